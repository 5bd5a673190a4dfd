"""Measures the figures of a device profile: bandwidth, matrix products, launches, slowdowns of operators.

Runs in this process what our own rules write, never a candidate of somebody else. Each rule is drawn as a
layer of its own, at sizes that should take a few milliseconds by what is known so far, and timed as
candidates are (`filters.worker.clock`). What the roofline leaves unexplained becomes the slowdown of the aten
operator that takes nearly all of the predicted time, or else of the public one.
"""

import os
import random
import runpy
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from composer.draft import Draft
from composer.drawing import follow
from composer.plan import Plan
from composer.profiles import CPU, GIB, DeviceProfile
from composer.render import render
from composer.roofline import Estimate, estimate
from composer.rules import RULES, Rule
from composer.sizes import solve
from filters.worker.clock import Clock
from filters.worker.environment import here
from filters.worker.faults import one_line

_WANTED_SECONDS = (1.5e-3, 4e-3, 8e-3)
"""One layer of every rule for each, in rounds: the first finds the order of magnitude for the others."""
_SHORTEST = 0.5e-3
"""Shorter times say more of launches than of the operator."""
_DOMINANT = 0.8
"""Share of the predicted time from which an aten operator answers for the whole of a sample."""
_NOTABLE = 1.15
"""Slowdowns of public operators nearer to 1 are left out."""
_HALF_TYPES = (torch.bfloat16, torch.float16)
_DEVICE_SHARE = 1 / 6
"""Of the device's memory for one layer: an H200 gets the 12 GiB that the memory limit of the filters
allows."""
_PEAK_BYTES_MAX, _TENSOR_BYTES_MAX = 12 * GIB, 4 * GIB
_QUIET_LOAD = 0.7
"""One other busy thread on two cores made a matrix product on both of them seven times slower."""
_UNTIL_MEDIAN = (float("inf"), float("inf"))
"""Bounds for the clock: every time is far from them, so that five samples are enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One layer of a single operator."""

    operator: str
    plan: Plan
    measured_seconds: float


class LayerClock:
    """Builds layers from source text of our own renderer and times them on one device."""

    def __init__(self, device: str) -> None:
        self._device = torch.device(device)
        self._clock = Clock(self._device)

    def seconds(self, code: str) -> float:
        """Return the median eager time of the layer. Raises whatever building or running it raises."""
        with tempfile.TemporaryDirectory(prefix="opweaver-") as folder:
            path = Path(folder) / "layer.py"
            path.write_text(code, encoding="utf-8")
            task = runpy.run_path(str(path))
        model = task["Model"](*task["get_init_inputs"]()).to(self._device).eval()
        with self._device:
            inputs = task["get_inputs"]()
        return self.call_seconds(lambda: model(*inputs))

    def call_seconds(self, call: Callable[[], Any], times: int = 1) -> float:
        """Return the median time of a call; where it is sampled several times, the smallest median."""
        with torch.no_grad():
            return min(self._clock.time(call, _UNTIL_MEDIAN).median_ms for _ in range(times)) / 1e3


def calibrate(device: str, budget_seconds: float, tell: Callable[[str], None]) -> DeviceProfile:
    """Return the profile of the device at hand, `cpu` or `cuda`; `tell` gets a line now and then.

    When the budget is spent no further layers are timed, except that each rule has been at least once.
    Speeds are measured at both ends, in case something else was at work at one of them.
    """
    if device == "cpu":
        torch.set_num_threads(len(os.sched_getaffinity(0)))
    load, *_ = os.getloadavg()
    if load > _QUIET_LOAD:
        tell(f"other programs are at work here (load {load:.1f}): figures may be several times too low")
    torch.manual_seed(0)
    clock = LayerClock(device)
    profile = _figures(device, clock)
    tell(f"{profile.name}: bandwidth, matrix products and launches measured; now {len(RULES)} rules")
    samples = _samples(profile, clock, time.monotonic() + budget_seconds, tell)
    return with_slowdowns(_better(profile, _figures(device, clock)), samples)


def _figures(device: str, clock: LayerClock) -> DeviceProfile:
    """Measure what needs no rule."""
    tensor_bytes, input_bytes, peak_bytes = _limits(device)
    x = torch.randn(tensor_bytes // 8, device=device)
    tiny = torch.ones(16, device=device)
    copy_seconds = clock.call_seconds(lambda: torch.neg(x), times=5)
    launches = clock.call_seconds(lambda: [torch.neg(tiny) for _ in range(200)], times=5)
    return DeviceProfile(
        name=f"{_device_name(device)}, torch {torch.__version__}",
        copy_bytes_per_second=_rounded(2 * x.nbytes / copy_seconds),
        launch_seconds=_rounded(launches / 200),
        matmul_flops_per_second={
            _name(dtype): _rounded(_matmul_rate(device, dtype, clock))
            for dtype in (torch.float32, *_HALF_TYPES)
        },
        tensor_bytes_max=tensor_bytes,
        input_bytes_max=input_bytes,
        peak_bytes_max=peak_bytes,
        dtype_slowdowns={_name(dtype): _rounded(_half_slowdown(x, dtype, clock)) for dtype in _HALF_TYPES},
    )


def _better(one: DeviceProfile, other: DeviceProfile) -> DeviceProfile:
    """Return the larger speeds of two measurements: whatever disturbs one makes it slower, never faster."""
    rates, others = one.matmul_flops_per_second, other.matmul_flops_per_second
    return replace(
        one,
        copy_bytes_per_second=max(one.copy_bytes_per_second, other.copy_bytes_per_second),
        launch_seconds=min(one.launch_seconds, other.launch_seconds),
        matmul_flops_per_second={dtype: max(rates[dtype], others[dtype]) for dtype in rates},
    )


def _limits(device: str) -> tuple[int, int, int]:
    """Bytes of one tensor, of all inputs and of one layer; on a CPU for the reason that `CPU` gives."""
    if device == "cpu":
        return CPU.tensor_bytes_max, CPU.input_bytes_max, CPU.peak_bytes_max
    peak = min(int(torch.cuda.get_device_properties(0).total_memory * _DEVICE_SHARE), _PEAK_BYTES_MAX)
    tensor = min(peak // 3, _TENSOR_BYTES_MAX)
    return tensor, tensor, peak


def _device_name(device: str) -> str:
    job = {"device": device, "compile_backend": "inductor", "threads": torch.get_num_threads()}
    return str(here(job)["device_name"])


def _matmul_rate(device: str, dtype: torch.dtype, clock: LayerClock) -> float:
    """Return FLOP per second of a square product, doubled in size until it takes a few milliseconds."""
    size, seconds = 256, 0.0
    while seconds < _WANTED_SECONDS[1] and size < 16384:
        size *= 2
        x = torch.randn(size, size, device=device).to(dtype)
        seconds = clock.call_seconds(partial(torch.mm, x, x), times=3)
    return 2 * size**3 / seconds


def _half_slowdown(x: Tensor, dtype: torch.dtype, clock: LayerClock) -> float:
    """Return the time per byte relative to that of float32, the median of three element-wise operators."""
    half = x.to(dtype)
    calls: tuple[Callable[[Tensor], Tensor], ...] = (torch.abs, torch.tanh, functional.gelu)
    return statistics.median(
        2 * clock.call_seconds(partial(call, half), times=3) / clock.call_seconds(partial(call, x), times=3)
        for call in calls
    )


def _samples(
    profile: DeviceProfile, clock: LayerClock, deadline: float, tell: Callable[[str], None]
) -> list[Sample]:
    """Time layers of one operator, round by round; an operator that fails here is told and left out."""
    samples: list[Sample] = []
    known: dict[str, float] = {}
    for number, wanted in enumerate(_WANTED_SECONDS):
        for rule in RULES:
            if number and (time.monotonic() > deadline or rule.operator not in known):
                continue
            rng = random.Random(f"{number}/{rule.operator}")
            try:
                plan = solved(rule, replace(profile, slowdowns=known), wanted, rng)
                if plan is None:
                    continue
                seconds = clock.seconds(render(plan))
            except RuntimeError as error:
                tell(f"{rule.operator}: left out, {one_line(error)}")
                continue
            known[rule.operator] = seconds / estimate(plan, profile).seconds
            samples.append(Sample(operator=rule.operator, plan=plan, measured_seconds=seconds))
        tell(f"round {number + 1} of {len(_WANTED_SECONDS)}: {len(samples)} layers so far")
    return samples


def solved(rule: Rule, profile: DeviceProfile, wanted: float, rng: random.Random) -> Plan | None:
    """Return a layer of that rule alone, for the wanted time or, where memory ends before, a shorter one."""
    for draft in _drafts(rule, rng):
        for seconds in (wanted, wanted / 2, wanted / 4):
            plan = solve(draft.plan(), profile, seconds, rng)
            if plan is not None:
                return plan
    return None


def _drafts(rule: Rule, rng: random.Random) -> Iterator[Draft]:
    """Draw the rule's operator on inputs that it takes, some times."""
    for _ in range(4):
        draft = Draft(rng)
        running = draft.start(rng.choice(rule.starts()), rule.drawn)
        if follow(draft, running, rule) is not None:
            yield draft


def with_slowdowns(profile: DeviceProfile, samples: Sequence[Sample]) -> DeviceProfile:
    """Return the profile with what the samples took in place of its slowdowns; see the module's text."""
    samples = [sample for sample in samples if sample.measured_seconds >= _SHORTEST]
    by_aten: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        cost = estimate(sample.plan, profile)
        kind = _dominant(cost)
        if kind is not None:
            by_aten[kind].append(sample.measured_seconds / cost.seconds)
    profile = replace(profile, slowdowns=_medians(by_aten))
    by_operator: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        by_operator[sample.operator].append(sample.measured_seconds / estimate(sample.plan, profile).seconds)
    notable = {
        name: factor for name, factor in _medians(by_operator).items() if not 1 / _NOTABLE < factor < _NOTABLE
    }
    return replace(profile, slowdowns={**profile.slowdowns, **notable})


def _dominant(cost: Estimate) -> str | None:
    kind = max(cost.aten_seconds, key=cost.aten_seconds.__getitem__)
    return kind if cost.aten_seconds[kind] >= _DOMINANT * cost.seconds else None


def _medians(samples: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: _rounded(statistics.median(factors)) for name, factors in sorted(samples.items())}


def _rounded(figure: float) -> float:
    """Three digits; more would be noise."""
    return float(f"{figure:.3g}")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
