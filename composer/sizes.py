"""Choose sizes so that a plan takes a wanted time: from a ladder, mainly by the batch.

Where a measurement shows that the prediction was wrong by so much that the layer misses the window, its sizes
move by one or two steps of the ladder (`steps_towards`, `moved`); each step changes the time by about 1.5.
"""

import math
import random
from functools import cache

from composer.plan import Plan
from composer.profiles import DeviceProfile
from composer.roofline import Estimate, estimate

FASTEST, SLOWEST = 1.5e-3, 15e-3
"""Wanted eager times are log-uniform between these, in seconds: well inside the window of 1 to 100 ms."""

TAIL_SHARE, TAIL_SLOWEST = 0.1, 60e-3
"""This share of the wanted times is log-uniform between `SLOWEST` and this many seconds instead."""

STEPS_MAX = 2
"""Most steps of the ladder by which one measurement moves sizes: a factor of 2.25 in time."""

BOUNDS = {
    "N": (4, 2**22),
    "F": (256, 4368),
    "L": (48, 1952),
    "C": (16, 256),
    "D": (7, 48),
    "H": (24, 256),
    "W": (24, 256),
    "A": (4, 32),
    "E": (24, 112),
    "P": (7, 48),
    "T": (48, 1952),
    "V": (656, 29600),
}
"""Smallest and largest size of each kind of axis."""

_STEP = 1.5
"""Ratio of neighbouring sizes of the ladder."""

_MOVES = 24
"""Changes of sizes other than the batch before a plan is given up."""


@cache
def ladder() -> tuple[int, ...]:
    """Return every size that a task may have: 256 x 1.5^k as whole numbers, from 16 on multiples of 8 or 16.

    Thus channels and features divide into groups, and neighbours differ by a factor of about 1.5.
    """
    rungs = []
    for k in range(-14, 25):
        size = 256 * _STEP**k
        unit = 16 if size >= 40 else 8 if size >= 12 else 1
        rungs.append(max(1, round(size / unit) * unit))
    return tuple(dict.fromkeys(rungs))


@cache
def rungs_within(smallest: int, largest: int) -> tuple[int, ...]:
    """Return the sizes of the ladder between two bounds."""
    return tuple(size for size in ladder() if smallest <= size <= largest)


def wanted_seconds(rng: random.Random) -> float:
    """Draw the eager time that a task should take."""
    bounds = (SLOWEST, TAIL_SLOWEST) if rng.random() < TAIL_SHARE else (FASTEST, SLOWEST)
    return math.exp(rng.uniform(*map(math.log, bounds)))


def solve(plan: Plan, profile: DeviceProfile, seconds: float, rng: random.Random) -> Plan | None:
    """Return the plan with sizes whose predicted time is within a step of the wanted one.

    The batch is solved first; where it meets a bound, another axis moves by one step. None where no sizes in
    the profile's memory come near; told at once where a layer that only moves bytes has all that memory.
    """
    for _ in range(_MOVES):
        plan, cost = _solve_batch(plan, profile, seconds)
        if _is_near(cost, profile, seconds):
            return plan
        fits = _room(cost, profile) >= 1
        if fits and cost.seconds < seconds and cost.flops == 0:
            return None
        moves = _moves(plan, smaller=cost.seconds > seconds or not fits)
        if not moves:
            return None
        plan = rng.choice(moves)
    return None


def steps_towards(measured_seconds: float, *, too_fast: bool) -> int:
    """Return how many steps of the ladder bring a layer that misses the window to the nearest wanted time.

    At least one step, and at most `STEPS_MAX`, since a time that far off says little about the next one;
    negative for a layer that is too slow.
    """
    factor = FASTEST / measured_seconds if too_fast else measured_seconds / TAIL_SLOWEST
    steps = max(1, min(round(math.log(factor, _STEP)), STEPS_MAX))
    return steps if too_fast else -steps


def moved(plan: Plan, profile: DeviceProfile, steps: int) -> Plan:
    """Return the plan larger by that many steps of the ladder, or smaller where they are negative.

    Each step goes to the batch or, where that meets a bound, to the first other axis that can move. Where
    none can, or the profile's memory is used up, the plan stays at the last step that was possible.
    """
    for _ in range(abs(steps)):
        fitting = [one for one in _moves(plan, smaller=steps < 0, batch=True) if _fits(one, profile)]
        if not fitting:
            break
        plan = fitting[0]
    return plan


def _solve_batch(plan: Plan, profile: DeviceProfile, seconds: float) -> tuple[Plan, Estimate]:
    """Scale the batch, to which time and memory are nearly proportional, until no rung is better."""
    batch = next(name for name, letter in plan.axes.items() if letter == "N")
    rungs = rungs_within(*BOUNDS["N"])
    tried: dict[int, tuple[Plan, Estimate]] = {}
    while (size := plan.sizes[batch]) not in tried:
        cost = estimate(plan, profile)
        tried[size] = plan, cost
        wanted = size * seconds / cost.seconds
        by_time = min(rungs, key=lambda rung: abs(math.log(rung / wanted)))
        by_memory = max((rung for rung in rungs if rung <= size * _room(cost, profile)), default=rungs[0])
        plan = plan.resized({batch: min(by_time, by_memory)})
    return min(tried.values(), key=lambda one: _error(one[1], profile, seconds))


def _room(cost: Estimate, profile: DeviceProfile) -> float:
    """Factor by which all tensors could grow; below 1 where they are too large."""
    return min(
        profile.tensor_bytes_max / cost.tensor_bytes,
        profile.input_bytes_max / cost.input_bytes,
        profile.peak_bytes_max / cost.peak_bytes,
    )


def _error(cost: Estimate, profile: DeviceProfile, seconds: float) -> float:
    """Distance of the predicted from the wanted time on a log scale; infinite where memory is short."""
    return abs(math.log(cost.seconds / seconds)) if _room(cost, profile) >= 1 else math.inf


def _is_near(cost: Estimate, profile: DeviceProfile, seconds: float) -> bool:
    """Within a step of the wanted time, but never more than half a step below the fastest that is wanted."""
    lowest = max(seconds / _STEP, min(seconds, FASTEST) / math.sqrt(_STEP))
    return lowest <= cost.seconds < seconds * _STEP and _room(cost, profile) >= 1


def _fits(plan: Plan, profile: DeviceProfile) -> bool:
    return _room(estimate(plan, profile), profile) >= 1


def _moves(plan: Plan, *, smaller: bool, batch: bool = False) -> list[Plan]:
    """Return the plan with one axis a step smaller or larger, for each that can move; any batch first."""
    moves = []
    for name, letter in sorted(plan.axes.items(), key=lambda axis: axis[1] != "N"):
        rungs = rungs_within(*BOUNDS[letter])
        rung = rungs.index(plan.sizes[name]) + (-1 if smaller else 1)
        if (batch or letter != "N") and 0 <= rung < len(rungs):
            moves.append(plan.resized({name: rungs[rung]}))
    return moves
