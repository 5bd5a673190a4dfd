"""How many requests may be under way, and when it is time to give up."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

GROWTH = 0.25
"""Slots won back with each reply: from half to all of 64 in 128 replies."""

NO_ENDPOINT = 3
"""Tries in a row at which nothing or something else answers, before any reply: the address is wrong."""

FAILURES = 8
"""Failures in a row, at least, before the endpoint is given up."""

BUSY_FACTOR = 10
"""How much longer we bear with one that is only busy."""


class Throttle:
    """Slots for requests: halved when the server says that it is too much, won back with each reply."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(most)
        self.active = 0
        self._not_before = 0.0
        self._last_cut = 0.0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one slot for the block; waits while the server wants to be left alone."""
        async with self._changed:
            while True:
                pause = self._not_before - time.monotonic()
                if pause <= 0 and self.active < max(1, int(self.limit)):
                    break
                if pause > 0:
                    self._changed.release()
                    try:
                        await asyncio.sleep(pause)
                    finally:
                        await self._changed.acquire()
                else:
                    await self._changed.wait()
            self.active += 1
        try:
            yield
        finally:
            async with self._changed:
                self.active -= 1
                self._changed.notify_all()

    def replied(self) -> None:
        """Win back a part of a slot."""
        self.limit = min(self.most, self.limit + GROWTH)

    def too_much(self, pause_seconds: float | None) -> None:
        """Halve the slots, at most once a second, and start nothing new for the time asked for."""
        now = time.monotonic()
        if now - self._last_cut >= 1:
            self.limit = max(1.0, self.limit / 2)
            self._last_cut = now
        if pause_seconds is not None:
            self._not_before = max(self._not_before, now + pause_seconds)


class Breaker:
    """Counts failures without a reply in between."""

    def __init__(self, patience_seconds: float) -> None:
        self._patience = patience_seconds
        self._last_reply: float | None = None
        self._first_failure = 0.0
        self.failures = 0

    @property
    def ever_replied(self) -> bool:
        """Whether the endpoint gave any reply since the start."""
        return self._last_reply is not None

    def replied(self) -> None:
        """Forget the failures."""
        self._last_reply = time.monotonic()
        self.failures = 0

    def failed(self, *, no_endpoint: bool, too_much: bool) -> bool:
        """Count a failure; return whether the endpoint should be given up."""
        now = time.monotonic()
        if self.failures == 0:
            self._first_failure = now
        self.failures += 1
        if no_endpoint and not self.ever_replied:
            return self.failures >= NO_ENDPOINT
        patience = self._patience * (BUSY_FACTOR if too_much else 1)
        return self.failures >= FAILURES and now - self._first_failure >= patience
