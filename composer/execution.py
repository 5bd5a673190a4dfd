"""Run the operators of a plan: on fake tensors to learn shapes and cost, on small samples to learn values."""

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode

from composer.plan import RUNNING, Argument, IsPositive, Plan, Size, Step, Value
from ops_crawler.own import live, own_code_runs


@cache
def resolve(dotted_name: str) -> Any:
    """Return the class or function of that public name, such as `torch.nn.functional.gelu`."""
    package, *path = dotted_name.split(".")
    found: Any = importlib.import_module(package)
    for name in path:
        found = getattr(found, name)
    return found


def bind(step: Step, sizes: Mapping[str, int]) -> Callable[[Mapping[str, Tensor]], Tensor]:
    """Return the step as a function of the tensors of `forward`; modules are built here.

    Raises UsageFault, then or when called, for whatever an operator of the user's own raises.
    """
    if step.usage is None:
        return _bound(resolve(step.operator), step, sizes)
    own = live(step.usage)
    if own is None:
        raise ValueError(f"{step.operator} belongs to a source that is not loaded")
    with own_code_runs():
        call = _bound(own, step, sizes)

    def own_call(tensors: Mapping[str, Tensor]) -> Tensor:
        with own_code_runs():
            return call(tensors)

    return own_call


def _bound(operator: Any, step: Step, sizes: Mapping[str, int]) -> Callable[[Mapping[str, Tensor]], Tensor]:
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
