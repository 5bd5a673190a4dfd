"""Who may use how much of the device's memory, so that no candidate fails for its neighbours' sake.

7 % of the rows of an earlier audit ran out of memory only because others held it. Each worker has a
cap on the device, and the caps of all that run together fit the device. Most candidates fit a small
cap; one that does not is measured again with a larger one before it is called too large.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

GIB = 1 << 30

CAPS_BYTES = (8 * GIB, 24 * GIB, 72 * GIB)
"""Tried in this order. A forward needs up to 16 GiB by the policy, the checks hold copies beside it, and
the double-precision run twice that; but nine of ten rows of Ops-6K fit the first cap."""
_USABLE_SHARE = 0.85
"""The rest is for the contexts of the workers (0.5 GiB each) and what escapes the allocator."""


class MemoryBudget:
    """Hands out shares of one device's memory in the order of asking."""

    def __init__(self, device_bytes: int) -> None:
        self.total_bytes = int(device_bytes * _USABLE_SHARE)
        self._free_bytes = self.total_bytes
        self._turn = threading.Lock()
        self._changed = threading.Condition()

    def caps(self) -> list[int]:
        """Return the caps to try, small before large, none above what the device has."""
        return sorted({min(cap, self.total_bytes) for cap in CAPS_BYTES})

    @contextmanager
    def reserve(self, wanted_bytes: int) -> Iterator[None]:
        """Wait for the memory and hold it while the block runs. Nobody overtakes a large request."""
        with self._turn, self._changed:
            self._changed.wait_for(lambda: self._free_bytes >= wanted_bytes)
            self._free_bytes -= wanted_bytes
        try:
            yield
        finally:
            with self._changed:
                self._free_bytes += wanted_bytes
                self._changed.notify_all()
