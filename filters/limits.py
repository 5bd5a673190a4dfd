"""What one candidate may use, watched from outside, because a worker's own limits end where it forks."""

import os
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from filters.reasons import Reason, Stage
from filters.sandbox.processes import descendants, resident_bytes, thread_count
from filters.spawner import Child

_START_SECONDS = 30
_MEMORY_LOOK_SECONDS = 0.05
_DISK_LOOK_SECONDS = 1.0
_BLOCK_BYTES = 512  # unit of st_blocks
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Wall-clock seconds per stage, stopped time not counted; the rest for the worker and all below it."""

    stage_seconds: float
    timing_seconds: float
    compile_seconds: float
    memory_bytes: int
    """Resident memory beyond what the worker started with."""
    disk_bytes: int = _GIB
    """All files in the scratch folder."""
    tasks: int = 256 + 4 * (os.cpu_count() or 1)
    """Processes and threads; torch starts up to two threads per core, compilers a handful of processes."""

    def seconds(self, stage: str | None) -> float:
        """Return the limit of one stage."""
        if stage is None:
            return _START_SECONDS
        if stage == Stage.RUNTIME:
            return self.timing_seconds
        return self.compile_seconds if stage in (Stage.COMPILE, Stage.COMPARE) else self.stage_seconds


class Consumption:
    """What a worker and everything that it has started use at this moment."""

    def __init__(self, child: Child, scratch: Path) -> None:
        self._child = child
        self._scratch = scratch
        self._next_memory_look = self._next_disk_look = monotonic()

    def excess(self, limits: Limits) -> tuple[Reason, str] | None:
        """Return what is over its limit, if anything; most calls look at nothing."""
        now = monotonic()
        found = None
        if now >= self._next_memory_look:
            self._next_memory_look = now + _MEMORY_LOOK_SECONDS
            found = self._processes(limits)
        if found is None and now >= self._next_disk_look:
            self._next_disk_look = now + _DISK_LOOK_SECONDS
            found = self._files(limits)
        return found

    def _processes(self, limits: Limits) -> tuple[Reason, str] | None:
        if self._child.keeper_pid is None or self._child.worker_pid is None:
            return None
        pids = descendants(self._child.keeper_pid)
        tasks = sum(map(thread_count, pids))
        if tasks > limits.tasks:
            return Reason.SIDE_EFFECT, f"more than {limits.tasks} processes and threads"
        memory = resident_bytes(self._child.worker_pid) - self._child.base_bytes
        # mapped files of the others are mostly libraries, shared with the worker
        memory += sum(resident_bytes(p, private=True) for p in pids if p != self._child.worker_pid)
        if memory > limits.memory_bytes:
            return Reason.TOO_MUCH_MEMORY, f"more than {limits.memory_bytes / _GIB:g} GiB of main memory"
        return None

    def _files(self, limits: Limits) -> tuple[Reason, str] | None:
        if _disk_bytes(self._scratch) <= limits.disk_bytes:
            return None
        return Reason.SIDE_EFFECT, f"more than {limits.disk_bytes / _GIB:g} GiB of files"


def _disk_bytes(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_blocks * _BLOCK_BYTES  # noqa: PTH118
            except OSError:
                continue  # deleted meanwhile
    return total
