"""What shards tell the driver, one message at a time: an actor on the driver's own node.

It outlives every shard, so what a shard has handed in is not lost with the shard. It ends with the driver.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from data.ledger_layout import JudgedRecord
from filters.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """A shard has an engine."""

    shard: int
    node: str
    """Name of the host."""
    environment: Environment
    admitted: bool
    """Whether it may measure: its environment is the run's, or the run may mix them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A candidate was measured."""

    shard: int
    id: str
    environment: str
    """Key of the environment."""
    lost: bool
    """Its worker was lost, so nothing is known of it."""
    record: str
    """The measurement as JSON, as the ledger keeps it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A candidate needs nothing more; it may have been rejected by its text alone."""

    shard: int
    id: str
    accepted: bool
    record: JudgedRecord | None
    """What the ledger keeps of it, so that the driver need not judge it again."""


Message = Began | Finished | Judged


class Mailbox:
    """A Ray actor; every method is a coroutine, so that thousands of calls can wait at once."""

    def __init__(self, environments: Sequence[Environment], *, mixed: bool) -> None:
        """`environments` are those of earlier starts; with `mixed` any other may join them."""
        self._environments = list(environments)
        self._mixed = mixed
        self._messages: list[Message] = []
        self._arrived = asyncio.Event()
        self._stopping = asyncio.Event()

    async def begin(self, shard: int, node: str, environment: Environment) -> bool:
        """Tell that a shard has an engine; returns whether it may measure with it."""
        known = environment in self._environments
        admitted = known or self._mixed or not self._environments
        if admitted and not known:
            self._environments.append(environment)
        await self.put(Began(shard=shard, node=node, environment=environment, admitted=admitted))
        return admitted and not self._stopping.is_set()

    async def put(self, message: Message) -> None:
        """Hand in a message; once this returns, it reaches the driver whatever becomes of the shard."""
        self._messages.append(message)
        self._arrived.set()

    async def take(self, seconds: float) -> list[Message]:
        """Return all messages since the last call, in order; waits that long for the first one."""
        if not self._messages:
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), seconds)
            except TimeoutError:
                return []
        taken, self._messages = self._messages, []
        return taken

    async def stop(self) -> None:
        """Let every shard end, also those that begin later."""
        self._stopping.set()

    async def until_stopped(self) -> None:
        """Return once `stop` was called."""
        await self._stopping.wait()
