"""What one forward of a task does, by aten operator. Works on real and on fake tensors."""

from collections import defaultdict
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from ops_crawler.lifting.lifted import Cost

_GROUPS = 8
"""Place of `groups` among the arguments of `aten.convolution`."""


def cost_of(task: ModuleType, batch: int) -> Cost:
    """Build the task's model, draw inputs and count what one forward does."""
    model = task.Model(*task.get_init_inputs()).eval()
    inputs = task.get_inputs()
    with torch.no_grad(), _Work() as work:
        model(*inputs)
    input_bytes = sum(_bytes(one) for one in inputs)
    weights = sum(_bytes(one) for one in model.state_dict().values())
    return Cost(
        batch=batch,
        work={name: (figures[0], figures[1], figures[2]) for name, figures in sorted(work.work.items())},
        tensor_bytes=max([work.largest, *map(_bytes, inputs)]),
        peak_bytes=input_bytes + weights + 3 * work.largest,
    )


class _Work(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.work: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        self.largest = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        results = [_bytes(tensor) for tensor in _tensors(result)]
        if results and not func.is_view and func._overloadpacket is not torch.ops.aten._unsafe_view:
            operands = {id(tensor): _bytes(tensor) for tensor in _tensors((args, kwargs))}
            formula = flop_registry.get(func._overloadpacket)
            flops = formula(*args, **(kwargs or {}), out_val=result) if formula else 0
            figures = self.work[_kind_of(func, args)]
            figures[0] += 1
            figures[1] += sum(operands.values()) + sum(results)
            figures[2] += int(flops)
            self.largest = max(self.largest, *results)
        return result


def _kind_of(func: Any, args: tuple[Any, ...]) -> str:
    """Name of the aten operator; grouped convolutions, far slower per FLOP, are a kind of their own."""
    name: str = func._overloadpacket.__name__
    return "grouped_convolution" if name == "convolution" and args[_GROUPS] > 1 else name


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _bytes(tensor: Tensor) -> int:
    """Bytes that are really there: an expanded axis counts once."""
    entries = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        entries *= length if stride else 1
    return entries * tensor.element_size()
