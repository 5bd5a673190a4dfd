"""Where the candidates of a run are measured: this machine (`flows.one_machine`) or a Ray cluster."""

from collections.abc import Sequence, Set
from typing import Protocol

from filters.environment import Environment
from flows.progress import Progress


class Site(Protocol):
    """What the stages of a run know of the place."""

    progress: Progress
    device: str
    """`cpu` or `cuda`."""

    @property
    def environments(self) -> Sequence[Environment]:
        """Under which measurements count, the first one first; none before anything was measured."""

    @property
    def set_aside(self) -> Set[str]:
        """Ids of candidates that this start does not try again."""

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called: what is not measured by now stays so."""

    def stop(self) -> None:
        """End all measuring at once, from any thread; what is finished is in the ledger."""

    def shard_size(self, count: int) -> int:
        """Return how many of so many candidates make one shard."""
