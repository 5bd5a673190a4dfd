"""Predict eager time and memory of a plan from bytes and FLOPs, on fake tensors, without running it.

Each aten call takes max(bytes / bandwidth, FLOPs / rate) plus a launch, bandwidth and rate those of its
dtype; views are free. Bytes are those of the distinct operands and of the results.
"""

from collections import defaultdict
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
from composer.plan import Plan
from composer.profiles import DeviceProfile

_GROUPS = 8
"""Place of `groups` among the arguments of `aten.convolution`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What one forward of a plan costs."""

    seconds: float
    flops: int
    """Of matrix products, convolutions and attention; 0 where all of the work is moving bytes."""
    tensor_bytes: int
    """The largest tensor."""
    input_bytes: int
    peak_bytes: int
    """Inputs, and the operand and results of the operator that has most of them."""
    aten_seconds: Mapping[str, float]
    """Where the time goes: seconds by aten operator, before what the profile says of the public one."""


def estimate(plan: Plan, profile: DeviceProfile) -> Estimate:
    """Return the predicted cost."""
    seconds, flops, largest_step = 0.0, 0, 0
    aten_seconds: dict[str, float] = defaultdict(float)
    with FakeTensorMode(), torch.no_grad():
        tensors = empty_inputs(plan)
        sizes = [_bytes(tensor) for tensor in tensors.values()]
        input_bytes = sum(sizes)
        for step in plan.steps:
            call = bind(step, plan.sizes)
            with _Cost(profile) as cost:
                result = call(tensors)
            largest_step = max(largest_step, _bytes(tensors[step.source]) + sum(cost.result_bytes))
            seconds += sum(cost.seconds.values()) * profile.slowdowns.get(step.operator, 1.0)
            for kind, kind_seconds in cost.seconds.items():
                aten_seconds[kind] += kind_seconds
            flops += cost.flops
            sizes += cost.result_bytes
            tensors = {**tensors, step.target: result}
    return Estimate(
        seconds=seconds,
        flops=flops,
        tensor_bytes=max(sizes),
        input_bytes=input_bytes,
        peak_bytes=input_bytes + largest_step,
        aten_seconds=aten_seconds,
    )


class _Cost(TorchDispatchMode):
    """Adds up the aten calls of one operator."""

    def __init__(self, profile: DeviceProfile) -> None:
        super().__init__()
        self.profile = profile
        self.seconds: dict[str, float] = defaultdict(float)
        """By aten operator."""
        self.flops = 0
        self.result_bytes: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        results = [_bytes(tensor) for tensor in _tensors(result)]
        if results and not func.is_view and func._overloadpacket is not torch.ops.aten._unsafe_view:
            operands = {id(tensor): _bytes(tensor) for tensor in _tensors((args, kwargs))}
            formula = flop_registry.get(func._overloadpacket)
            flops = formula(*args, **(kwargs or {}), out_val=result) if formula else 0
            bytes_moved = sum(operands.values()) + sum(results)
            kind, dtype = _kind_of(func, args), _dtype_of((args, kwargs, result))
            self.seconds[kind] += self.profile.seconds(kind, bytes_moved, flops, dtype)
            self.flops += flops
            self.result_bytes += results
        return result


def _kind_of(func: Any, args: tuple[Any, ...]) -> str:
    """Name of the aten operator; grouped convolutions, far slower per FLOP, are a kind of their own."""
    name = func._overloadpacket.__name__
    return "grouped_convolution" if name == "convolution" and args[_GROUPS] > 1 else name


def _dtype_of(tree: Any) -> str:
    """Name of the first floating dtype among operands and results; `float32` where there is none."""
    dtypes = [tensor.dtype for tensor in _tensors(tree) if tensor.is_floating_point()]
    return str(dtypes[0]).removeprefix("torch.") if dtypes else "float32"


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _bytes(tensor: Tensor) -> int:
    """Bytes that are really there: an expanded axis counts once."""
    entries = 1
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        entries *= length if stride else 1
    return entries * tensor.element_size()
