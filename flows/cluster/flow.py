"""The stage `measure` of a run on a cluster: one Prefect task per shard, which Ray places on a node."""

from typing import TYPE_CHECKING, Any, cast

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect_ray.context import remote_options
from prefect_ray.task_runners import PrefectRayFuture, RayTaskRunner
from ray.actor import ActorHandle

from flows import pipeline
from flows.cluster import shard as shards
from flows.cluster.cluster import Cluster
from flows.cluster.shard import Shard

if TYPE_CHECKING:
    from flows.pipeline import Run


@flow(name="measure", validate_parameters=False, task_runner=RayTaskRunner())
def measure(run: "Run") -> None:
    """Run the candidates, shard by shard, wherever there is room."""
    assert isinstance(run.site, Cluster)
    with pipeline.measuring(run) as places, remote_options(**run.site.slots.options):
        run.site.measure([run.pending[each.start : each.stop] for each in places], _submitted)


def _submitted(stored: Any, mailbox: Any) -> PrefectRayFuture[None]:
    """Hand out a shard that lies in Ray's store; the task gets the shard itself."""
    return cast("PrefectRayFuture[None]", measure_shard.submit(stored, mailbox))


@task(name="measure shard", cache_policy=NO_CACHE)
def measure_shard(shard: Shard, mailbox: ActorHandle) -> None:
    """Run some candidates; each is handed in as soon as it is finished."""
    shards.measure(shard, mailbox)
