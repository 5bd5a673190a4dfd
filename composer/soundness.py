"""Would this layer be worth computing? Judged from samples of its values, at the sizes it has.

The limits mirror what the filters measure, with room: no trivial answer may pass, every operator and
every input must matter, values stay finite and of moderate size.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from composer.execution import bind, running_shapes
from composer.plan import RUNNING, Plan, Step
from composer.values import Effect, normal, rms, shuffled

DISTINCT = 0.7
"""Share of the entries that another draw must miss by more than the usual tolerance, 1e-2."""

NOTICEABLE = 0.05
"""An operator or an input must change the result by this share of its root mean square."""

LARGEST = 1e3
"""Root mean square beyond which rounding and overflow get in the way of what follows."""

Samples = Mapping[str, Tensor]


def sound(plan: Plan, effects: Sequence[Effect]) -> bool:
    """Tell whether the layer is worth computing; `effects` belong to the plan's steps."""
    samples = {tensor.name: normal(number) for number, tensor in enumerate(plan.inputs)}
    skipped: Samples | None = None
    for step, effect, shape in zip(plan.steps, effects, running_shapes(plan), strict=True):
        result = _after(step, effect, shape, samples)
        if not result.isfinite().all() or rms(result) > LARGEST:
            return False
        if effect.transfer is None and not _every_part_matters(step, result, samples):
            return False
        comparable = effect.transfer is None or effect.transfer.selects
        if skipped and comparable and not _differ(result, _after(step, effect, shape, skipped)):
            return False  # the operator before might as well be left out
        skipped = samples if effect.transfer is None else None
        samples = {**samples, RUNNING: result}
    return _distinct(samples[RUNNING])


def nonnegative_after(step: Step, effect: Effect, nonnegative: bool, inputs: Sequence[str]) -> bool:
    """Tell whether no entry of the step's result can be negative, given whether the running value's can.

    Element-wise operators are called on a grid; `inputs` are the other tensors that they may read.
    """
    if effect.transfer is not None:
        return nonnegative if effect.transfer.nonnegative is None else effect.transfer.nonnegative
    grid = torch.linspace(0, math.sqrt(LARGEST), 401, dtype=torch.float64).square()
    grid = grid if nonnegative else torch.cat([-grid, grid])
    signed = torch.linspace(-10, 10, len(grid), dtype=torch.float64)
    others = {name: signed[shuffled(len(grid), number)] for number, name in enumerate(inputs)}
    return bool((bind(step, {})({RUNNING: grid, **others}) >= 0).all())


def _after(step: Step, effect: Effect, shape: Sequence[int], samples: Samples) -> Tensor:
    if effect.transfer is None:
        return bind(step, {})(samples)
    count = effect.count or math.prod(shape[axis] for axis in effect.axes)
    return effect.transfer.apply(samples[RUNNING], count)


def _every_part_matters(step: Step, result: Tensor, samples: Samples) -> bool:
    """Tell whether the operator changes the running value, and each of its inputs the result."""
    if not _differ(result, samples[RUNNING]):
        return False
    call = bind(step, {})
    redrawn = [{**samples, name: samples[name].roll(1)} for name in step.reads()]
    return all(_differ(result, call(other)) for other in redrawn)


def _differ(one: Tensor, other: Tensor) -> bool:
    return rms(one - other) >= NOTICEABLE * max(rms(one), 1e-6)


def _distinct(sample: Tensor) -> bool:
    """Compare with another draw, as a verifier does."""
    close = torch.isclose(sample, sample[shuffled(len(sample), 1)], rtol=1e-2, atol=1e-2)
    return float(close.double().mean()) <= 1 - DISTINCT
