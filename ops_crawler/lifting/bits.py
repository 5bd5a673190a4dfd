"""When two results count as the same: not nearly, but in every bit."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def same_bits(expected: Sequence[Tensor], given: Sequence[Any]) -> bool:
    """Whether two lists of tensors agree in types, shapes and every bit, the sign of a zero too."""
    return len(expected) == len(given) and all(
        isinstance(b, Tensor)
        and a.dtype == b.dtype
        and a.shape == b.shape
        and torch.equal(_octets(a), _octets(b))
        for a, b in zip(expected, given, strict=True)
    )


def _octets(tensor: Tensor) -> Tensor:
    """Return the memory of a tensor's values, in the order of its elements."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
