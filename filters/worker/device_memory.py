"""The share of its device's memory that a worker has, which is its allocator's limit.

Before a stage the worker asks for what that will need, and gives back what it no longer uses. Where an
estimate was too low, the call that ran out of memory is made again with more, as long as there is more.

Some libraries are not told: cuDNN that gets no workspace takes a slower algorithm, with other bits, and torch
keeps that choice for the life of the process. The allocator's count shows it, and the worker starts again.
"""

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch

from filters.worker.channel import Channel
from filters.worker.faults import CandidateFault, is_out_of_memory

Result = TypeVar("Result")

_SLACK_BYTES = 3 << 28
"""Room for what our comparisons need besides whole tensors, and for pieces that the allocator cannot use."""
_MORE = 2


class Memory:
    """That of a device on which nobody has to ask: the CPU."""

    def ask(self, counted: Callable[[], float]) -> None:
        """Wait until this worker has so many bytes; they are counted only where somebody asks."""

    def leave_device(self) -> None:
        """Say that this worker runs nothing on the device until it asks again: a neighbour may time there."""

    least_bytes = 0
    """What every request gets at least."""
    most_bytes = math.inf
    """What no request gets more of."""

    @contextmanager
    def at_most(self, most_bytes: float) -> Iterator[None]:
        """Let a candidate that needs more in this block fail at once, not wait for the whole device."""
        self.most_bytes = most_bytes
        try:
            yield
        finally:
            self.most_bytes = math.inf

    def more(self) -> int:
        """Wait for more than was granted so far, and return how much; 0 where that was all there is.

        Raises CandidateFault at the limit of the block.
        """
        return 0

    def settle(self, *, raised: int) -> None:
        """Look whether more allocations failed than were raised since the last look."""

    def enough_for(self, call: Callable[[], Result]) -> Result:
        """Call; where memory runs out, call again with more, as long as there is more.

        What the call asks for by itself was too little then, and is raised to what it has now.
        """
        least_bytes = self.least_bytes
        try:
            while True:
                try:
                    result = call()
                except Exception as error:  # candidate code may raise anything
                    if not is_out_of_memory(error):
                        raise
                    failure = error.with_traceback(None)  # its frames hold tensors
                else:
                    self.settle(raised=0)
                    return result
                self.settle(raised=1)
                self.least_bytes = self.more()
                if not self.least_bytes:
                    raise failure
        finally:
            self.least_bytes = least_bytes


class DeviceMemory(Memory):
    """That of a device which many workers share: the parent grants it."""

    def __init__(self, channel: Channel, granted_bytes: int) -> None:
        self._channel = channel
        self.least_bytes = granted_bytes
        self._failed = _failed_allocations()
        self._limit(granted_bytes)

    def ask(self, counted: Callable[[], float]) -> None:
        """Give back what is unused, and wait until the parent grants what comes next."""
        self._ask(max(counted() + _SLACK_BYTES, self.least_bytes))

    def leave_device(self) -> None:
        """Tell the parent, which need not stop this process then."""
        torch.cuda.synchronize()
        self._channel.send("off_device")

    def more(self) -> int:
        """Ask for twice as much as so far."""
        before = self._granted_bytes
        if before >= self.most_bytes:
            detail = f"more than {before / 2**30:.1f} GiB of the device's memory"
            raise CandidateFault("too_much_memory", detail)
        self._ask(_MORE * before)
        return self._granted_bytes if self._granted_bytes > before else 0

    def settle(self, *, raised: int) -> None:
        """End this process where a library went on without the memory that it wanted, if there is more."""
        before, self._failed = self._failed, _failed_allocations()
        if self._failed - before > raised and self.more():
            self._channel.starved()

    def _ask(self, wanted_bytes: float) -> None:
        gc.collect()
        torch.cuda.empty_cache()
        wanted_bytes = min(wanted_bytes, self.most_bytes)
        self._limit(self._channel.memory(torch.cuda.memory_reserved(), int(wanted_bytes)))

    def _limit(self, granted_bytes: int) -> None:
        self._granted_bytes = granted_bytes
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, granted_bytes / total))


def _failed_allocations() -> int:
    """Return how many there were in this process."""
    return torch.cuda.memory_stats().get("num_ooms", 0)
