"""Where the candidates of a run are measured: this machine (`flows.one_machine`) or a Ray cluster."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from data.ledger import Ledger
from filters.environment import Environment
from flows.errors import UsageError
from flows.one_machine import OneMachine
from flows.progress import Progress
from flows.run_folder import RunFolder
from flows.settings import Settings

if TYPE_CHECKING:  # needs ray
    from flows.cluster.cluster import Cluster


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


@contextmanager
def joined(settings: Settings) -> Iterator[str]:
    """Join the cluster, if there is to be one, and yield the address at which shards reach this process.

    Raises UsageError, InfrastructureError.
    """
    if settings.run.engine == "local":
        if settings.run.address or settings.run.mixed_devices:
            raise UsageError("--address, --mixed-devices: belong to --engine ray; add it")
        yield "127.0.0.1"
        return
    from flows.cluster.connection import connected

    with connected(settings.run.address) as host:
        yield host


def site_of(
    settings: Settings, timings: Mapping[str, dict[str, Any]] | None, ledger: Ledger, folder: RunFolder
) -> "OneMachine | Cluster":
    """Return where the settings want candidates to be measured. Raises UsageError, SandboxFault."""
    if settings.run.engine == "local":
        return OneMachine(settings, timings, ledger)
    from flows.cluster.cluster import Cluster

    return Cluster(settings, timings, ledger, folder)
