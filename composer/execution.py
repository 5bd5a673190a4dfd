"""Run the operators of a plan: on fake tensors to learn shapes and cost, on small samples to learn values."""

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode

from composer.plan import RUNNING, Argument, IsPositive, Plan, Size, Step, Value


@cache
def resolve(dotted_name: str) -> Any:
    """Return the class or function of that public name, such as `torch.nn.functional.gelu`."""
    package, *path = dotted_name.split(".")
    found: Any = importlib.import_module(package)
    for name in path:
        found = getattr(found, name)
    return found


def bind(step: Step, sizes: Mapping[str, int]) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """Return the step as a function of the tensors of `forward`; modules are built here."""
    operator = resolve(step.operator)
    if step.kind == "module":
        module = operator(
            *(_concrete(argument, sizes, {}) for argument in step.args),
            **{name: _concrete(argument, sizes, {}) for name, argument in step.kwargs},
        ).eval()
        return lambda tensors: module(tensors[RUNNING])
    return lambda tensors: operator(
        *(_concrete(argument, sizes, tensors) for argument in step.args),
        **{name: _concrete(argument, sizes, tensors) for name, argument in step.kwargs},
    )


def empty_inputs(plan: Plan) -> dict[str, Tensor]:
    """Return the inputs by name, without values; fake ones inside a fake-tensor mode."""
    return {tensor.name: torch.empty([plan.sizes[size] for size in tensor.shape]) for tensor in plan.inputs}


def running_shapes(plan: Plan) -> list[tuple[int, ...]]:
    """Return the shape of the running value before every step."""
    shapes = []
    with FakeTensorMode(), torch.no_grad():
        tensors = empty_inputs(plan)
        for step in plan.steps:
            shapes.append(tuple(tensors[RUNNING].shape))
            tensors = {**tensors, RUNNING: bind(step, plan.sizes)(tensors)}
    return shapes


def _concrete(argument: Argument, sizes: Mapping[str, int], tensors: Mapping[str, Tensor]) -> Any:
    match argument:
        case Size(name):
            return sizes[name]
        case Value(name):
            return tensors[name]
        case IsPositive(Value(name)):
            return tensors[name] > 0
        case _:
            return argument
