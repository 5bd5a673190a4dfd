"""Errors of this room, named after the boundary at which they arise.

1. What a candidate does wrong is never raised: it becomes a fact of its measurement and then a verdict.
2. What our own machinery cannot do (no forkserver, no device, a full disk under the scratch folder) is
   a `SandboxFault`; it stops the run and says how to go on.
3. A worker that dies for reasons of its own is neither: its measurement says `worker_lost`, and the
   candidate is measured again later.
4. Everything else is a bug and keeps its traceback.
"""


class SandboxFault(Exception):
    """The machinery around the candidates cannot work here. The message is one line for the user."""


class Interrupted(Exception):
    """`Engine.stop()` was called while this candidate was being measured; nothing is known about it."""
