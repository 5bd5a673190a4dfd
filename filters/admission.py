"""Who may use how much of the device's memory, so that no candidate fails for its neighbours' sake.

7 % of the rows of an earlier audit ran out of memory only because others held it. Each worker has a share
of the device, which is its allocator's limit, and the shares of all that run together fit the device. What
a worker needs changes from stage to stage by a factor of three and more, so it asks anew before each.
"""

import threading

GIB = 1 << 30

FIRST_BYTES = 3 * GIB
"""What a worker starts with, when nothing is known of its candidate but the source: enough to draw inputs."""
FURTHER_TRY = 3
"""A worker whose memory ran out starts again with so many times as much."""
_USABLE_SHARE = 0.85
"""The rest is for the contexts of the workers (0.5 GiB each) and what escapes the allocator."""
_HEADROOM_SHARE = 1 / 3
"""Kept from newcomers while others are at work, so that these need not wait with all that they hold."""


class CrowdedError(Exception):
    """Everybody waits for memory that others hold; this worker has to give up its own and start again.

    Raised by `Share.change`. `wanted_bytes` is what it asked for.
    """

    def __init__(self, wanted_bytes: int) -> None:
        super().__init__("the device's memory is held by others that wait as well")
        self.wanted_bytes = wanted_bytes


class MemoryBudget:
    """One device's memory. Shares that are held may grow before newcomers get one."""

    def __init__(self, device_bytes: int) -> None:
        self.total_bytes = int(device_bytes * _USABLE_SHARE)
        self._free_bytes = self.total_bytes
        self._turn = threading.Lock()
        self._changed = threading.Condition()
        self._held = 0
        self._waiting = 0

    def share(self, wanted_bytes: float, least_bytes: float = 0) -> "Share":
        """Wait for the memory and hold it, `least_bytes` for good; newcomers come in the order of asking."""
        wanted = self._at_most_all(max(wanted_bytes, least_bytes))
        with self._turn, self._changed:
            self._changed.wait_for(lambda: self._may_start(wanted))
            self._free_bytes -= wanted
            self._held += 1
        return Share(self, wanted, least_bytes)

    def _may_start(self, wanted: int) -> bool:
        if not self._held:
            return True
        return not self._waiting and self._free_bytes - wanted >= self.total_bytes * _HEADROOM_SHARE

    def change(self, share: "Share", wanted_bytes: float) -> None:
        """Let a share shrink, or wait until it can grow. Raises CrowdedError where nobody else can go on."""
        wanted = self._at_most_all(wanted_bytes)
        with self._changed:
            self._waiting += 1
            try:
                while self._free_bytes < wanted - share.bytes:
                    if self._waiting == self._held:
                        raise CrowdedError(wanted)
                    self._changed.wait()
                self._free_bytes += share.bytes - wanted
                share.bytes = wanted
            finally:
                self._waiting -= 1
                self._changed.notify_all()

    def release(self, share: "Share") -> None:
        """Take a share back."""
        with self._changed:
            self._free_bytes += share.bytes
            self._held -= 1
            self._changed.notify_all()

    def _at_most_all(self, wanted_bytes: float) -> int:
        return min(int(wanted_bytes), self.total_bytes)


class Share:
    """Memory that one worker may use; a context manager that gives it back."""

    def __init__(self, budget: MemoryBudget, held_bytes: int, least_bytes: float) -> None:
        self._budget = budget
        self._least_bytes = least_bytes
        self.bytes = held_bytes

    def change(self, wanted_bytes: float) -> int:
        """Ask for another size and return what is granted. Raises CrowdedError."""
        self._budget.change(self, max(wanted_bytes, self._least_bytes))
        return self.bytes

    def __enter__(self) -> "Share":
        return self

    def __exit__(self, *error: object) -> None:
        self._budget.release(self)
