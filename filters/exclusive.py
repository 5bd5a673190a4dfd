"""One worker times, all others stand still.

A lock among the workers is not enough: what runs in a neighbour's process would share the cores and the
caches, or the GPU. So the parent stops every process of the neighbours for the fraction of a second that a
timing takes, and does not count that time against their limits. Beside a GPU, those that compile go on.
"""

import signal
import threading
from time import monotonic

from filters.spawner import Child


class Exclusive:
    """Knows the running children and gives one of them the machine."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._members = threading.Lock()
        self._running: set[Child] = set()
        self._exempt: set[Child] = set()
        self._holder: Child | None = None
        self._held_since = 0.0
        self._held_before = 0.0
        self._own_seconds: dict[Child, float] = {}

    def enter(self, child: Child) -> None:
        """Add a child; during a neighbour's timing it is stopped at once."""
        with self._members:
            self._running.add(child)
            self._own_seconds[child] = 0.0
            if self._holder is not None:
                child.signal(signal.SIGSTOP)

    def leave(self, child: Child) -> None:
        """Remove a child that has ended, and give the machine back if it held it."""
        self.release(child)
        with self._members:
            self._running.discard(child)
            self._exempt.discard(child)
            self._own_seconds.pop(child, None)

    def exempt(self, child: Child) -> None:
        """Let a child go on while others time: it does not use what they time on."""
        with self._members:
            if child not in self._running or child in self._exempt:
                return
            self._exempt.add(child)
            if self._holder is not None:
                child.signal(signal.SIGCONT)

    def include(self, child: Child) -> None:
        """Stop a child again while others time, at once where one does."""
        with self._members:
            if child not in self._exempt:
                return
            self._exempt.discard(child)
            if self._holder is not None:
                child.signal(signal.SIGSTOP)

    def acquire(self, child: Child) -> None:
        """Stop everybody else. Blocks while another child is timing."""
        self._turn.acquire()
        with self._members:
            self._holder = child
            self._held_since = monotonic()
            self._signal_others(child, signal.SIGSTOP)

    def release(self, child: Child) -> None:
        """Let everybody go on, if this child held the machine."""
        with self._members:
            if self._holder is not child:
                return
            self._signal_others(child, signal.SIGCONT)
            held = monotonic() - self._held_since
            for own in {child} | self._exempt:
                self._own_seconds[own] += held
            self._held_before += held
            self._holder = None
        self._turn.release()

    @property
    def held_seconds(self) -> float:
        """For how long somebody had the machine to itself, up to the last release."""
        return self._held_before

    def stopped_seconds(self, child: Child) -> float:
        """Return for how long others have held the machine so far; what it does alone is its own time."""
        with self._members:
            by_another = self._holder is not None and child is not self._holder and child not in self._exempt
            held = monotonic() - self._held_since if by_another else 0.0
            return self._held_before + held - self._own_seconds.get(child, 0.0)

    def _signal_others(self, child: Child, number: int) -> None:
        for other in self._running - self._exempt - {child}:
            other.signal(number)
