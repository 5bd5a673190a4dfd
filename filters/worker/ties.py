"""Does the result depend on the order of equal elements, which sorting leaves open?

Operators that pick elements by their place among others are computed by a stable sort, of the tensor and
of the reversed tensor: two answers that are both right, with equal elements in opposite orders.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from filters.worker import trees

_SHARE_MAX = 1e-2
"""Among a thousand random float32 numbers two can be equal; that much is let pass."""


class TieOrder(TorchDispatchMode):
    """Gives equal elements the order of their positions, or the opposite one.

    `sort(stable=True)` keeps the order, `max` and `argmax` promise the first of equal elements: those are
    left alone.
    """

    def __init__(self, *, reverse: bool) -> None:
        super().__init__()
        self.reverse = reverse
        self.called: str | None = None
        """The last operator whose order of equal elements was chosen here."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(func).removeprefix("aten.")
        pick = _PICKS.get(name)
        if pick is None or args[0].dim() == 0:
            return func(*args, **kwargs)
        self.called = name.partition(".")[0]
        return pick(self, **_by_name(func, args, kwargs))

    def sort(
        self, values: torch.Tensor, dim: int, descending: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Sort with equal elements in the chosen order."""
        source = values.flip(dim) if self.reverse else values
        ordered, indices = source.sort(dim=dim, descending=descending, stable=True)
        return ordered, values.shape[dim] - 1 - indices if self.reverse else indices


def _sort(mode: TieOrder, self: torch.Tensor, dim: int, descending: bool) -> Any:
    return mode.sort(self, dim, descending)


def _topk(mode: TieOrder, self: torch.Tensor, k: int, dim: int, largest: bool, sorted: bool) -> Any:
    picked = tuple(part.narrow(dim, 0, k) for part in mode.sort(self, dim, largest))
    return tuple(part.flip(dim) for part in picked) if mode.reverse and not sorted else picked


def _kthvalue(mode: TieOrder, self: torch.Tensor, k: int, dim: int, keepdim: bool) -> Any:
    found = (part.narrow(dim, k - 1, 1) for part in mode.sort(self, dim))
    return tuple(part if keepdim else part.squeeze(dim) for part in found)


_PICKS: dict[str, Any] = {"sort.default": _sort, "topk.default": _topk, "kthvalue.default": _kthvalue}


def _by_name(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return all arguments of a call under their names, defaults included."""
    names = [argument.name for argument in func._schema.arguments]
    defaults = {argument.name: argument.default_value for argument in func._schema.arguments}
    return defaults | dict(zip(names, args, strict=False)) | kwargs


def undefined_order(one: Any, other: Any, called: str | None) -> str | None:
    """Say whose order decides more than a few elements of the output; None if nobody's does."""
    if called is None or _largest_share_of_unequal(one, other) <= _SHARE_MAX:
        return None
    return f"{called}, whose order is left open"


def _largest_share_of_unequal(one: Any, other: Any) -> float:
    if trees.structure(one) != trees.structure(other):
        return 1.0
    pairs = zip(trees.tensors(one), trees.tensors(other), strict=True)
    shares = [float((trees.bits(a) != trees.bits(b)).double().mean()) for a, b in pairs if a.numel()]
    return max(shares, default=0.0)
