"""Timing one call: exclusively, with a cold last-level cache, after warm-up; the median counts.

The clock functions are bound when this module is loaded, before any candidate, so a candidate that
replaces `time.perf_counter` changes nothing here.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, perf_counter_ns
from typing import Any

import torch

seconds = perf_counter

_WARM_UPS = 3
_SAMPLES_MIN = 10
_SAMPLES_MAX = 30
_SAMPLES_NEAR_A_BOUND = 50
_SAMPLES_FAR = 5
_MEASURED_MS_MIN = 60.0
"""Sampling stops at this much measured time once the least number of samples is there."""
_SAMPLES_NEAR_A_BOUND_MIN = 15
_MEASURED_MS_NEAR_A_BOUND = 1000.0
"""The same near a bound: a call of 90 ms would hold the machine for seconds otherwise."""
_PROBE_SECONDS_MAX = 0.5e-3
"""A kernel of microseconds takes longer only where another process's kernels run as well ..."""
_QUIET_SECONDS = 6e-3
"""... and so does one of several within this time: processes take turns of about 2 ms on a GPU."""
_WAITING_SECONDS_MAX = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Run times of one callable in ms."""

    median_ms: float
    iqr_ms: float
    samples: int


class Clock:
    """Times calls on one device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._flush = torch.empty(_cache_bytes(device) * 2, dtype=torch.uint8, device=device)

    def time(self, call: Callable[[], Any], bounds_ms: tuple[float, float]) -> Timing:
        """Sample the call: few samples far from both bounds, more within 10 % of one."""
        for _ in range(_WARM_UPS):
            call()
        samples: list[float] = []
        while not self._enough(samples, bounds_ms):
            samples.append(self._cuda(call) if self._device.type == "cuda" else self._cpu(call))
        quartiles = statistics.quantiles(samples, n=4)
        return Timing(
            median_ms=statistics.median(samples), iqr_ms=quartiles[2] - quartiles[0], samples=len(samples)
        )

    def is_quiet(self) -> bool:
        """Wait until nobody else's kernels run on the device; False if that takes too long.

        Who is stopped queues no more of them, but those that are queued still run.
        """
        if self._device.type != "cuda":
            return True
        probe = self._flush[:1]
        start = since = seconds()
        while since - start < _WAITING_SECONDS_MAX:
            before = seconds()
            probe.fill_(1)
            torch.cuda.synchronize(self._device)
            now = seconds()
            if now - before > _PROBE_SECONDS_MAX:
                since = now
            elif now - since > _QUIET_SECONDS:
                return True
        return False

    @staticmethod
    def _enough(samples: list[float], bounds_ms: tuple[float, float]) -> bool:
        if len(samples) < _SAMPLES_FAR:
            return False
        median = statistics.median(samples)
        if median < bounds_ms[0] / 2 or median > bounds_ms[1] * 2:
            return True
        if len(samples) < _SAMPLES_MIN:
            return False
        if any(0.9 * bound < median < 1.1 * bound for bound in bounds_ms):
            long_enough = sum(samples) >= _MEASURED_MS_NEAR_A_BOUND
            return len(samples) >= (_SAMPLES_NEAR_A_BOUND_MIN if long_enough else _SAMPLES_NEAR_A_BOUND)
        return len(samples) >= _SAMPLES_MAX or sum(samples) >= _MEASURED_MS_MIN

    def _cpu(self, call: Callable[[], Any]) -> float:
        self._flush.fill_(1)
        start = perf_counter_ns()
        call()
        return (perf_counter_ns() - start) / 1e6

    def _cuda(self, call: Callable[[], Any]) -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self._flush.fill_(1)
        start.record()
        call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)


def _cache_bytes(device: torch.device) -> int:
    """Return the size of the last-level cache, at most 256 MB; 32 MB where the system does not tell."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).L2_cache_size
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text().strip()
    except OSError:
        return 32 << 20
    return min(int(text.rstrip("KM")) << (20 if text.endswith("M") else 10), 256 << 20)
