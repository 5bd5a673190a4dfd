"""Measures candidates with all workers of one engine, and stops cleanly at any moment."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from composer.candidate import Candidate
from filters.engine import Engine
from filters.errors import Interrupted
from filters.judge import judge
from filters.judging.source import source_finding
from filters.measurement import Measurement
from filters.policy import Policy
from filters.screening import screened
from filters.verdict import Verdict

Keep = Callable[[Candidate, Measurement], None]
"""Where a finished measurement goes; called from the worker threads."""


class Audience(Protocol):
    """Hears of every candidate that needs nothing more, from the worker threads."""

    def judged(self, candidate: Candidate, measurement: Measurement | None, verdict: Verdict) -> None:
        """Take note of one, judged by itself; without a measurement where its source was enough."""


class Measuring:
    """One pool of threads for all shards that are under way; each thread waits for one worker."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        keep: Keep,
        audience: Audience,
        *,
        skip_source_filters: bool = False,
    ) -> None:
        self._engine = engine
        self._policy = policy
        self._keep = keep
        self._audience = audience
        self._skip_source_filters = skip_source_filters
        self._pool = ThreadPoolExecutor(engine.workers, thread_name_prefix="measure")
        self._stopped = threading.Event()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called: what is not measured by now stays so."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Kill the workers at once; every `measure` under way returns with what is finished."""
        self._stopped.set()
        self._engine.stop()

    def measure(self, shard: Sequence[Candidate]) -> None:
        """Measure a shard and keep each result as it comes; nothing that its source rejects is executed.

        A fault of the machinery (SandboxFault, StorageError) stops all shards.
        """
        futures = [self._pool.submit(self._measure_one, candidate) for candidate in shard]
        try:
            for future in futures:
                future.result()
        except BaseException:  # Ctrl-C too: the other candidates must not go on; raised again
            self.stop()
            raise

    def _measure_one(self, candidate: Candidate) -> None:
        if self.stopped:
            return
        measurement = None
        if self._skip_source_filters or source_finding(candidate.code, self._policy) is None:
            try:
                measurement = self._engine.measure(candidate)
            except Interrupted:
                return
            if not self._skip_source_filters:
                measurement = screened(candidate, measurement)
            self._keep(candidate, measurement)
        verdict = judge(candidate, measurement, self._policy, skip_source_filters=self._skip_source_filters)
        self._audience.judged(candidate, measurement, verdict)


@contextmanager
def stopped_after(minutes: float | None, began: float, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` that many minutes after `began` (`time.monotonic`), if the block lasts so long."""
    if minutes is None:
        yield
        return
    timer = threading.Timer(max(minutes * 60 - (time.monotonic() - began), 0), stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def interruptible(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM call `stop` before they raise KeyboardInterrupt.

    Without it the threads would wait for their workers, which ignore the terminal's signals.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        stop()
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
