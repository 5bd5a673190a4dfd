"""Layers of the transformers library as texts that stand alone.

Classes of `transformers.models.*.modeling_*` become self-contained Python that imports only torch and a few
modules of the standard library. What runs here is the installed library and text derived from it, which
whoever installed the library trusts as much as the library; tasks, whoever wrote them, are executed by the
filters' worker alone.

`closures` reads the library's files without importing them. `recording` and `original` run the real classes
in a process of their own, `extract` runs the text in a process in which transformers cannot be imported,
`lift` drives both, `frozen` keeps the results.
"""
