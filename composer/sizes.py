"""Choose sizes so that a plan takes a wanted time: from a ladder, mainly by the batch."""

import math
import random
from functools import cache

from composer.plan import Plan
from composer.profiles import DeviceProfile
from composer.roofline import Estimate, estimate

FASTEST, SLOWEST = 1.5e-3, 15e-3
"""Wanted eager times are log-uniform between these, in seconds: well inside the window of 1 to 100 ms."""

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
"""Changes of sizes other than the batch before the nearest plan found is taken."""


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
    return math.exp(rng.uniform(math.log(FASTEST), math.log(SLOWEST)))


def solve(plan: Plan, profile: DeviceProfile, seconds: float, rng: random.Random) -> Plan | None:
    """Return the plan with sizes whose predicted time is near the wanted one, within the profile's memory.

    The batch is solved first; where it meets a bound, another axis moves by one step. None where no sizes
    come near the range of wanted times.
    """
    best, best_cost, best_error = plan, None, math.inf
    for _ in range(_MOVES):
        plan, cost = _solve_batch(plan, profile, seconds)
        error = _error(cost, profile, seconds)
        if error < best_error:
            best, best_cost, best_error = plan, cost, error
        if error < math.log(_STEP):
            break
        moved = _moved(plan, smaller=cost.seconds > seconds or _room(cost, profile) < 1, rng=rng)
        if moved is None:
            break
        plan = moved
    near = best_cost is not None and FASTEST / _STEP <= best_cost.seconds <= SLOWEST * _STEP
    return best if near else None


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


def _moved(plan: Plan, *, smaller: bool, rng: random.Random) -> Plan | None:
    """Return the plan with one axis other than the batch a step smaller or larger; None if none can move."""
    moves = []
    for name, letter in plan.axes.items():
        rungs = rungs_within(*BOUNDS[letter])
        rung = rungs.index(plan.sizes[name]) + (-1 if smaller else 1)
        if letter != "N" and 0 <= rung < len(rungs):
            moves.append({name: rungs[rung]})
    return plan.resized(rng.choice(moves)) if moves else None
