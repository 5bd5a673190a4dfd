"""MKL's vector functions, chosen once, before any worker calls them from several threads.

MKL picks the kernel of each function at its first call. When several threads make that call at the same
time, one may compute its part with a less accurate kernel, that once: `exp` and `tanh` then seem to be
nondeterministic. pytorch/pytorch#188792 describes it; MKL 2025.0 repaired it.
"""

import torch

_FUNCTIONS = (
    "acos asin atan ceil cos cosh erf erfc erfinv exp exp2 expm1 floor lgamma log log10 log1p log2 round"
    " rsqrt sin sinh sqrt tan tanh trunc"
).split()
_ELEMENTS = 16
"""Too few for a second thread; a process that has threads cannot be forked."""


def choose_kernels() -> None:
    """Call each function once, from one thread."""
    for dtype in (torch.float32, torch.float64):
        x = torch.full((_ELEMENTS,), 0.5, dtype=dtype)
        for name in _FUNCTIONS:
            getattr(torch, name)(x)
