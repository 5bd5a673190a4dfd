"""Run the operators of a plan: on empty tensors for shapes and cost, on small samples for values."""

import importlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from composer.input_draws import dtype_of
from composer.plan import RUNNING, Argument, Dtype, Plan, Size, Step, Term, Value
from ops_crawler.own import live, own_code_runs

SUFFIXES: Mapping[str, Callable[[Any], Tensor]] = MappingProxyType(
    {
        "": lambda result: result,
        "[0]": lambda result: result[0],
        "[1]": lambda result: result[1],
        ".values": lambda result: result.values,
        ".real": lambda result: result.real,
        ".abs()": lambda result: result.abs(),
        ".float()": lambda result: result.float(),
    }
)
"""What may be written after a call, to make one real tensor of its result."""


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
    if not step.operator:
        return lambda tensors: _concrete(step.args[0], sizes, _seen_by(step, tensors))
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
    chosen = SUFFIXES[step.suffix]
    if step.kind == "module":
        module = operator(
            *(_concrete(argument, sizes, {}) for argument in step.args),
            **{name: _concrete(argument, sizes, {}) for name, argument in step.kwargs},
        ).eval()
        return lambda tensors: chosen(_feed(module, step, sizes, _seen_by(step, tensors)))
    return lambda tensors: chosen(
        operator(
            *(_concrete(argument, sizes, _seen_by(step, tensors)) for argument in step.args),
            **{name: _concrete(value, sizes, _seen_by(step, tensors)) for name, value in step.kwargs},
        )
    )


def empty_inputs(plan: Plan) -> dict[str, Tensor]:
    """Return the inputs by name, without values; fake ones inside a fake-tensor mode."""
    return {
        tensor.name: torch.empty([plan.sizes[size] for size in tensor.shape], dtype=dtype_of(tensor))
        for tensor in plan.inputs
    }


def source_shapes(plan: Plan) -> list[tuple[int, ...]]:
    """Return the shape of what every step reads as its running value."""
    shapes = []
    with torch.device("meta"), torch.no_grad():
        tensors = empty_inputs(plan)
        for step in plan.steps:
            shapes.append(tuple(tensors[step.source].shape))
            tensors[step.target] = bind(step, plan.sizes)(tensors)
    return shapes


def _seen_by(step: Step, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    return tensors if step.source == RUNNING else {**tensors, RUNNING: tensors[step.source]}


def _feed(module: Any, step: Step, sizes: Mapping[str, int], tensors: Mapping[str, Tensor]) -> Any:
    if tensors[RUNNING].dtype is torch.float64:  # samples
        module.double()
    if isinstance(module, nn.RNNBase):  # its steps take minutes to trace one by one
        module = partial(_all_steps_at_once, module)
    elif isinstance(module, nn.TransformerEncoderLayer | nn.MultiheadAttention):
        module.train()  # without dropout the same; evaluation fuses all into a call of unknown FLOPs
    return module(
        *(_concrete(argument, sizes, tensors) for argument in step.fed),
        **{name: _concrete(argument, sizes, tensors) for name, argument in step.fed_kwargs},
    )


def _all_steps_at_once(module: nn.RNNBase, x: Tensor) -> tuple[Tensor]:
    """Return a result of the right shape by the products of a recurrent layer, without their order."""
    inputs, hidden = module.all_weights[0][:2]
    results = []
    for _ in range(1 + module.bidirectional):
        projected = functional.linear(x, inputs)
        states = functional.linear(projected[..., : module.hidden_size].tanh(), hidden) + projected
        results.append(states[..., : module.hidden_size].tanh())
    return (torch.cat(results, dim=-1),)


def _concrete(argument: Argument, sizes: Mapping[str, int], tensors: Mapping[str, Tensor]) -> Any:
    match argument:
        case Size(name):
            return sizes[name]
        case Value(name):
            return tensors[name]
        case Dtype(name):
            return getattr(torch, name)
        case Term(compute=compute, arguments=arguments):
            return compute(*(_concrete(part, sizes, tensors) for part in arguments))
        case tuple():
            return tuple(_concrete(part, sizes, tensors) for part in argument)
        case _:
            return argument
