"""One machine as the place where candidates are measured: one engine, whose workers all shards share."""

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from composer.candidate import Candidate
from data.ledger import Ledger
from filters.engine import Engine
from filters.environment import Environment
from filters.measurement import Measurement
from flows.measuring import Measuring
from flows.progress import Progress
from flows.settings import Settings

SHARDS_MAX = 32
"""Shards of a round at most: Prefect keeps a record of each, and thousands slow it down."""


class OneMachine:
    """A `flows.site.Site`; the workers run for as long as the block does."""

    def __init__(
        self, settings: Settings, timings: Mapping[str, dict[str, Any]] | None, ledger: Ledger
    ) -> None:
        self._engine = Engine(settings.filters, settings.policy, timings, unsafe=settings.run.unsafe)
        self._ledger = ledger
        self._stack = ExitStack()
        self.progress = Progress()
        self._measuring = Measuring(self._engine, settings.policy, self._keep, self.progress)
        self.device = self._engine.device
        self.set_aside: frozenset[str] = frozenset()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._engine)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def environments(self) -> tuple[Environment, ...]:
        """This machine."""
        return (self._engine.environment,)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._measuring.stopped

    def stop(self) -> None:
        """Kill the workers at once."""
        self._measuring.stop()

    def shard_size(self, count: int) -> int:
        """Return the size of a shard: some for each worker, so that none waits for long."""
        return max(2 * self._engine.workers, math.ceil(count / SHARDS_MAX))

    def measure(self, candidates: Sequence[Candidate]) -> None:
        """Measure the candidates; each is in the ledger as soon as it is finished."""
        self._measuring.measure(candidates)

    def _keep(self, candidate: Candidate, measurement: Measurement) -> None:
        self._ledger.put(candidate.id, self._engine.environment.key, measurement)
