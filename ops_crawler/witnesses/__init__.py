"""How the frozen catalogue's example calls are found and executed. Needed only to build the catalogue.

`opinfo` takes arguments from torch's own tests, `docstrings` from its examples, `search` tries some; `calls`
writes a call down so that it can be made again, `execution` makes it.
"""
