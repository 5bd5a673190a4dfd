"""Try a layer of a plan on small samples: do the shapes fit, and is it worth computing?

Torch's own operators are called in this process, as by the rules; no text of a model is executed.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from composer.execution import bind
from composer.llm.arguments import Axes, Choice, constants, reads_two, step_of
from composer.plan import RUNNING, Argument, Input, Plan, Size, Step
from composer.sizes import BOUNDS, rungs_within
from ops_crawler.operator import Operator

AXES: Mapping[str, Sequence[int]] = MappingProxyType(
    {"F": (512, 256, 768, 1024), "L": (128, 64, 256), "C": (64, 32, 96), "H": (48, 32, 64), "W": (48, 32, 64)}
)
"""Sizes that a plan may choose for the axes of its first input; the batch N is solved for."""

_NAMES = {"N": "BATCH_SIZE", "F": "FEATURES", "L": "LENGTH", "C": "CHANNELS", "H": "HEIGHT", "W": "WIDTH"}
_INPUTS = ("y", "z", "u", "v", "w")
_BATCH = 3
"""Samples; no size that a plan may choose is as small."""
_DIFFERENT = 0.5
"""Share of the entries that another draw must miss by more than the usual tolerance, 1e-2."""
_NOTICEABLE = 0.05
"""An operator must change its input by this share of its root mean square."""
_LARGEST = 1e3

_FAULTS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AssertionError)
"""What torch raises where shapes or arguments do not fit."""

Chosen = tuple[Operator, Mapping[str, Choice]]


class LayerFault(ValueError):
    """The layer does not work, or is not worth computing; the text says why."""


def tried(layout: str, sizes: Mapping[str, int], chosen: Sequence[Chosen]) -> Plan:
    """Return the layer as a plan with the smallest batch. Raises LayerFault."""
    plan_sizes = {_NAMES[letter]: _BATCH if letter == "N" else sizes[letter] for letter in layout}
    inputs = [Input(RUNNING, tuple(plan_sizes))]
    steps: list[Step] = []
    axes: Axes = tuple(map(Size, plan_sizes))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        samples = {RUNNING: _draw([plan_sizes[size] for size in inputs[0].shape])}
        for operator, values in chosen:
            other = None
            if reads_two(operator):
                other = _INPUTS[len(inputs) - 1]
                inputs.append(Input(other, _names_of(axes, plan_sizes)))
                samples[other] = _draw(samples[RUNNING].shape)
            names = constants(values, plan_sizes)
            plan_sizes |= {name: int(values[argument]) for argument, name in names.items()}
            try:
                step = step_of(operator, values, axes, names, other)
                result = bind(step, plan_sizes)(samples)
            except _FAULTS as error:
                raise LayerFault(f"{_on(operator, samples)}: {_one_line(error)}") from None
            _require_tensor(operator, samples, result)
            _require_effect(operator.name, samples[RUNNING], result)
            told = {plan_sizes[name]: Size(name) for name in names.values()}
            axes = _axes_after(axes, samples[RUNNING].shape, result.shape, told)
            steps.append(step)
            samples[RUNNING] = result
    _require_variety(samples[RUNNING])
    batch = {_NAMES["N"]: rungs_within(*BOUNDS["N"])[0]}
    return Plan(
        inputs=tuple(inputs), steps=tuple(steps), sizes=plan_sizes | batch, axes=dict.fromkeys(batch, "N")
    )


def _on(operator: Operator, samples: Mapping[str, Tensor]) -> str:
    return f"{operator.name} on shape {tuple(samples[RUNNING].shape)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _require_tensor(operator: Operator, samples: Mapping[str, Tensor], result: Any) -> None:
    batch = samples[RUNNING].shape[:1]
    if not isinstance(result, Tensor) or result.dtype != torch.float32 or result.shape[:1] != batch:
        raise LayerFault(f"{_on(operator, samples)} gives no float32 tensor with the batch in front")


def _axes_after(axes: Axes, before: Sequence[int], after: Sequence[int], told: Mapping[int, Size]) -> Axes:
    """Return the axes of a result: named where they are as before or what the operator was told."""
    named: list[Argument] = []
    for axis, size in enumerate(after):
        if len(before) == len(after) and before[axis] == size:
            named.append(axes[axis])
        else:
            named.append(told.get(size, size) if axis else axes[0])
    return named


def _names_of(axes: Axes, sizes: dict[str, int]) -> tuple[str, ...]:
    """Return a size's name for every axis, new ones for those that have none."""
    names = []
    for axis in axes:
        if isinstance(axis, Size):
            names.append(axis.name)
        else:
            assert isinstance(axis, int)
            names.append(f"SIZE_{axis}")
            sizes[f"SIZE_{axis}"] = axis
    return tuple(names)


def _draw(shape: Sequence[int]) -> Tensor:
    return torch.randn(tuple(shape))


def _rms(tensor: Tensor) -> float:
    return float(tensor.square().mean().sqrt())


def _require_effect(name: str, before: Tensor, after: Tensor) -> None:
    if not after.isfinite().all() or _rms(after) > _LARGEST:
        raise LayerFault(f"{name} gives values that are not finite or above {_LARGEST:g}")
    if before.shape == after.shape and _rms(after - before) < _NOTICEABLE * max(_rms(before), 1e-6):
        raise LayerFault(f"{name} leaves its input as it is")


def _require_variety(result: Tensor) -> None:
    """Compare the samples of the batch with each other, as a verifier would."""
    close = torch.isclose(result, result.roll(1, dims=0), rtol=1e-2, atol=1e-2)
    if float(close.float().mean()) > 1 - _DIFFERENT:
        raise LayerFault("the result hardly depends on the input")
