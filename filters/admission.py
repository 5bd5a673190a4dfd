"""Who may use how much of the device's memory, so that no candidate fails for its neighbours' sake.

7 % of the rows of an earlier audit ran out of memory only because others held it. Each worker has a share
of the device, which is its allocator's limit, and the shares of all that run together fit the device. What
a worker needs changes from stage to stage by a factor of three and more, so it asks anew before each, and
while it waits it holds only what its tensors take.
"""

import threading
from dataclasses import dataclass, field
from time import monotonic

GIB = 1 << 30

FIRST_BYTES = GIB
"""What a worker starts with; it asks for more as soon as it knows the sizes of its candidate."""
_USABLE_SHARE = 0.85
"""The rest is for the contexts of the workers (0.5 GiB each) and what escapes the allocator."""
_RESERVED_SHARE = 0.15
"""Kept from those who still build, so that others need not wait with all that they hold."""
_PATIENCE_SECONDS = 5.0
"""Whoever waits longer than this is served before all that asked later, so that large ones get their turn."""


class CrowdedError(Exception):
    """Everybody waits for memory that others hold; this worker has to give up its own and start again.

    `wanted_bytes` is what it asked for, and should start with.
    """

    def __init__(self, wanted_bytes: int) -> None:
        super().__init__("the device's memory is held by others that wait as well")
        self.wanted_bytes = wanted_bytes


@dataclass(slots=True, kw_only=True, eq=False)
class _Request:
    share: "Share"
    wanted_bytes: int
    building: bool
    since: float = field(default_factory=monotonic)


class MemoryBudget:
    """One device's memory, in shares."""

    def __init__(self, device_bytes: int, patience_seconds: float = _PATIENCE_SECONDS) -> None:
        self.total_bytes = int(device_bytes * _USABLE_SHARE)
        self._patience_seconds = patience_seconds
        self._free_bytes = self.total_bytes
        self._changed = threading.Condition()
        self._line: list[_Request] = []
        self._holders = 0

    def share(self, first_bytes: int = FIRST_BYTES) -> "Share":
        """Wait for what a worker starts with, and hold it."""
        share = Share(self)
        share.change(0, first_bytes, building=True)
        return share

    def change(self, share: "Share", kept_bytes: int, wanted_bytes: int, *, building: bool) -> None:
        """Shrink a share to what is in use, then wait until it can have what is wanted.

        Raises CrowdedError in the last of those that wait, once nobody else can go on.
        """
        wanted = min(wanted_bytes, self.total_bytes)
        request = _Request(share=share, wanted_bytes=wanted, building=building)
        with self._changed:
            self._resize(share, min(kept_bytes, share.bytes))
            self._line.append(request)
            self._changed.notify_all()
            try:
                while not self._may_go(request):
                    if self._must_give_up(request):
                        raise CrowdedError(request.wanted_bytes)
                    self._changed.wait()
                self._resize(share, request.wanted_bytes)
            finally:
                self._line.remove(request)
                self._changed.notify_all()

    def release(self, share: "Share") -> None:
        """Take a share back."""
        with self._changed:
            self._resize(share, 0)
            self._changed.notify_all()

    def _resize(self, share: "Share", size_bytes: int) -> None:
        self._holders += (size_bytes > 0) - (share.bytes > 0)
        self._free_bytes += share.bytes - size_bytes
        share.bytes = size_bytes

    def _may_go(self, request: _Request) -> bool:
        if self._everybody_waits():
            return self._fits(request)
        reserved = self.total_bytes * _RESERVED_SHARE if request.building else 0
        return self._fits(request, reserved) and not self._stands_back(request)

    def _stands_back(self, request: _Request) -> bool:
        """True where an older request has lost its patience; those who build block only one another."""
        lost = monotonic() - self._patience_seconds
        older = self._line[: self._line.index(request)]
        return any(each.since < lost and each.building <= request.building for each in older)

    def _must_give_up(self, request: _Request) -> bool:
        holders = [each for each in self._line if each.share.bytes]
        if not self._everybody_waits() or any(map(self._fits, self._line)):
            return False
        return holders[-1] is request

    def _everybody_waits(self) -> bool:
        return sum(each.share.bytes > 0 for each in self._line) == self._holders

    def _fits(self, request: _Request, reserved_bytes: float = 0) -> bool:
        return request.wanted_bytes - request.share.bytes <= self._free_bytes - reserved_bytes


class Share:
    """Memory that one worker may use; a context manager that gives it back."""

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.bytes = 0

    def change(self, kept_bytes: int, wanted_bytes: int, *, building: bool = False) -> int:
        """Ask for another size and return what is granted. Raises CrowdedError."""
        self._budget.change(self, kept_bytes, wanted_bytes, building=building)
        return self.bytes

    def __enter__(self) -> "Share":
        return self

    def __exit__(self, *error: object) -> None:
        self._budget.release(self)
