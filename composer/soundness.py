"""Would this layer be worth computing? Judged from samples of its values, at the sizes it has.

The limits mirror what the filters measure, with room: no trivial answer may pass, every operator and
every input must matter, values stay finite and of moderate size.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache

import torch
from torch import Tensor

from composer.execution import bind, source_shapes
from composer.input_draws import DRAWS
from composer.plan import RUNNING, Input, Plan, Step
from composer.values import SAMPLE, UNBOUNDED, Effect, rms, shuffled

DISTINCT = 0.7
"""Share of the entries that another draw must miss by more than the usual tolerance, 1e-2."""

NOTICEABLE = 0.05
"""An operator or an input must change the result by this share of its root mean square."""

LARGEST = 1e3
"""Root mean square beyond which rounding and overflow get in the way of what follows."""

_OUTLIER = 12.0
"""Largest entry of a sample in root mean squares: beyond it, a few entries decide all comparisons."""

_NOISELESS = 40_000
"""Entries over which mean and deviation of a sample are those of its distribution, to half a percent."""

_GRID = 401

Samples = Mapping[str, Tensor]


@torch.no_grad()
def sound(plan: Plan, effects: Sequence[Effect]) -> bool:
    """Tell whether the layer is worth computing; `effects` belong to the plan's steps."""
    samples = {tensor.name: DRAWS[tensor.drawn].sample(k) for k, tensor in enumerate(plan.inputs)}
    rolled: Samples = {**samples, RUNNING: samples[RUNNING].roll(1)}
    skipped: Samples | None = None
    before = ""
    for step, effect, shape in zip(plan.steps, effects, source_shapes(plan), strict=True):
        result = _after(step, effect, shape, samples)
        if not _moderate(result):
            return False
        if effect.transfer is None and not _every_part_matters(step, result, samples):
            return False
        if _is_normed_already(effect, shape, samples[step.source], result):
            return False
        comparable = (effect.transfer is None or effect.transfer.selects) and step.source == before
        if skipped and comparable and not _differ(result, _after(step, effect, shape, skipped)):
            return False  # the operator before might as well be left out
        skipped = _without(step, samples) if effect.transfer is None else None
        samples = {**samples, step.target: result}
        rolled = {**rolled, step.target: _after(step, effect, shape, rolled)}
        before = step.target
    last = plan.steps[-1].target
    return _distinct(samples[last]) and _differ(samples[last], rolled[last])


@torch.no_grad()
def bounds_after(
    step: Step, effect: Effect, bounds: tuple[float, float], inputs: Sequence[Input]
) -> tuple[float, float]:
    """Return the range of the step's result, given that of its source.

    Element-wise operators are called on a grid; `inputs` are the tensors that they may read besides.
    """
    if effect.transfer is not None:
        return bounds if effect.transfer.bounds is None else effect.transfer.bounds
    grid = _grid(*bounds)
    others = {tensor.name: _spread(tensor, k, len(grid)) for k, tensor in enumerate(inputs[1:])}
    result = bind(step, {})({**others, step.source: grid})
    if not result.is_floating_point() or result.isnan().any():
        return UNBOUNDED
    return float(result.min()), float(result.max())


@cache
def _grid(low: float, high: float) -> Tensor:
    """Return points between two bounds, denser around zero; what is unbounded ends at `LARGEST`."""
    points = torch.linspace(0, math.sqrt(LARGEST), _GRID, dtype=torch.float64).square()
    points = torch.cat([-points.flip(0), points])
    low, high = max(low, -LARGEST), min(high, LARGEST)
    between = torch.linspace(low, high, _GRID, dtype=torch.float64)
    return torch.cat([points.clamp(low, high), between])


def _spread(tensor: Input, number: int, count: int) -> Tensor:
    """Return values of an input all over its range, in a fixed random order."""
    draw = DRAWS[tensor.drawn]
    if tensor.drawn != "normal":
        return draw.sample(number).repeat(count // SAMPLE + 1)[:count]
    return torch.linspace(-10, 10, count, dtype=torch.float64)[shuffled(count, number)]


def _after(step: Step, effect: Effect, shape: Sequence[int], samples: Samples) -> Tensor:
    if effect.transfer is None:
        return bind(step, {})(samples)
    return effect.transfer.apply(samples[step.source], _count(effect, shape))


def _count(effect: Effect, shape: Sequence[int]) -> int:
    """Return the number of entries that are combined."""
    return effect.count or math.prod(shape[axis] for axis in effect.axes)


def _is_normed_already(effect: Effect, shape: Sequence[int], source: Tensor, result: Tensor) -> bool:
    """Tell whether a norm has nothing to do; over few entries their chance is something."""
    if effect.transfer is None or not effect.transfer.rescales or _count(effect, shape) < _NOISELESS:
        return False
    return not _differ(result, source)


def _without(step: Step, samples: Samples) -> Samples:
    """Return the samples as they were if the step handed its source through."""
    return {**samples, step.target: samples[step.source]}


def _moderate(result: Tensor) -> bool:
    if not result.isfinite().all():
        return False
    size = rms(result)
    return size <= LARGEST and float(result.abs().max()) <= _OUTLIER * size


def _every_part_matters(step: Step, result: Tensor, samples: Samples) -> bool:
    """Tell whether the operator changes the running value, and each of its inputs the result."""
    if not _differ(result, samples[step.source]):
        return False
    call = bind(step, {})
    names = dict.fromkeys((step.source, *step.reads()))
    redrawn = [{**samples, name: samples[name].roll(1)} for name in names]
    return all(_differ(result, call(other)) for other in redrawn)


def _differ(one: Tensor, other: Tensor) -> bool:
    return rms(one - other) >= NOTICEABLE * max(rms(one), 1e-6)


def _distinct(sample: Tensor) -> bool:
    """Compare with another draw, as a verifier does."""
    close = torch.isclose(sample, sample[shuffled(len(sample), 1)], rtol=1e-2, atol=1e-2)
    return float(close.double().mean()) <= 1 - DISTINCT
