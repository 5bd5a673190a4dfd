"""Assignment through repeated indices: which write wins is undefined, on CUDA also in practice.

Found from the executed call, since the same operator through a permutation is well defined.
"""

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_ALONG_DIM = {"aten::scatter.src", "aten::scatter_.src", "aten::index_copy", "aten::index_copy_"}
_BY_POSITION = {"aten::index_put", "aten::index_put_", "aten::_index_put_impl_", "aten::put", "aten::put_"}


class ScatterTargets(TorchDispatchMode):
    """Notes the first assignment scatter whose indices repeat a target."""

    def __init__(self) -> None:
        super().__init__()
        self.repeated: str | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name + (f".{func._schema.overload_name}" if func._schema.overload_name else "")
        if self.repeated is None and _repeats(name, args, kwargs or {}):
            self.repeated = name.removeprefix("aten::")
        return func(*args, **(kwargs or {}))


def _repeats(name: str, args: Any, kwargs: Any) -> bool:
    if name in _ALONG_DIM:
        _, dim, index = args[:3]
        return _repeats_along(index, dim if index.dim() > 1 else 0)  # that of `index_copy` is always flat
    if name in _BY_POSITION:
        accumulate = args[3] if len(args) > 3 else kwargs.get("accumulate", False)
        values = args[2]
        if accumulate or values.numel() == 1:
            return False
        if "index_put" in name:
            return _repeats_positions(args[0], args[1])
        return _repeats_along(args[1].reshape(-1), 0)
    return False


def _repeats_along(index: torch.Tensor, dim: int) -> bool:
    if index.dim() == 0 or index.shape[dim] < 2:
        return False
    ordered = index.sort(dim=dim).values
    return bool(
        (
            ordered.narrow(dim, 1, ordered.shape[dim] - 1) == ordered.narrow(dim, 0, ordered.shape[dim] - 1)
        ).any()
    )


def _repeats_positions(target: torch.Tensor, indices: list[torch.Tensor | None]) -> bool:
    """Flatten the indexed dimensions to one position each. A boolean mask never repeats."""
    flat: torch.Tensor | None = None
    for dim, index in enumerate(indices):
        if index is None:
            continue
        if index.dtype in (torch.bool, torch.uint8):
            return False
        position = index.long() % target.shape[dim]
        flat = position if flat is None else flat * target.shape[dim] + position
    return flat is not None and _repeats_along(flat.reshape(-1), 0)
