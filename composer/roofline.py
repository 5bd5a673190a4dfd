"""Predict eager time and memory of a plan from bytes and FLOPs, on fake tensors, without running it.

Each aten call takes max(bytes / bandwidth, FLOPs / rate) plus a launch; views are free. Bytes are those of
the distinct operands and of the results.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from composer.execution import bind, empty_inputs
from composer.plan import RUNNING, Plan
from composer.profiles import DeviceProfile


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one forward of a plan costs."""

    seconds: float
    input_bytes: int
    peak_bytes: int
    """Inputs, parameters, and the largest operand and intermediates of one operator."""


def estimate(plan: Plan, profile: DeviceProfile) -> Estimate:
    """Return the predicted cost."""
    seconds, largest = 0.0, 0
    with FakeTensorMode(), torch.no_grad():
        tensors = empty_inputs(plan)
        input_bytes = sum(_bytes(tensor) for tensor in tensors.values())
        for step in plan.steps:
            call = bind(step, plan.sizes)
            with _Cost(profile) as cost:
                result = call(tensors)
            largest = max(largest, _bytes(tensors[RUNNING]) + cost.result_bytes)
            seconds += cost.seconds
            tensors = {**tensors, RUNNING: result}
    return Estimate(seconds=seconds, input_bytes=input_bytes, peak_bytes=input_bytes + largest)


class _Cost(TorchDispatchMode):
    """Adds up the aten calls of one operator."""

    def __init__(self, profile: DeviceProfile) -> None:
        super().__init__()
        self.profile = profile
        self.seconds = 0.0
        self.result_bytes = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            self._add(func._overloadpacket, args, kwargs or {}, result)
        return result

    def _add(self, packet: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
        results = sum(_bytes(tensor) for tensor in _tensors(result))
        operands = sum(_bytes(tensor) for tensor in {id(t): t for t in _tensors((args, kwargs))}.values())
        formula = flop_registry.get(packet)
        flops = formula(*args, **kwargs, out_val=result) if formula else 0
        self.seconds += self.profile.seconds(packet.__name__, operands + results, flops)
        self.result_bytes += results


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _bytes(tensor: Tensor) -> int:
    """Bytes that are really there: an expanded axis counts once."""
    entries = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        entries *= length if stride else 1
    return entries * tensor.element_size()
