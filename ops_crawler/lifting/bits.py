"""When two results count as the same: not nearly, but in every bit."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def same_bits(expected: Sequence[Tensor], given: Sequence[Any]) -> bool:
    """Whether two lists of tensors agree in types, shapes and every bit."""
    return len(expected) == len(given) and all(
        isinstance(b, Tensor) and a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
        for a, b in zip(expected, given, strict=True)
    )
