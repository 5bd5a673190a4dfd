"""A run as Prefect flows: one per stage, one task per shard, and `synthesize` for all of it."""

from collections.abc import Callable
from typing import Any

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows import pipeline
from flows.pipeline import Run

_RUNNER: TaskRunner[Any] = ThreadPoolTaskRunner(max_workers=2)
"""All shards share the workers of the run; a second one keeps them busy while the first one ends."""


@flow(name="synthesize", validate_parameters=False)
def synthesize(run: Run) -> None:
    """Operators to dataset folder; continues where an earlier start stopped."""
    crawl(run)
    judge(run)
    while compose(run):
        _measure_of(run)(run)
        judge(run)
    write(run)


@flow(name="crawl", validate_parameters=False)
def crawl(run: Run) -> None:
    """Which operators exist."""
    pipeline.crawl(run)


@flow(name="compose", validate_parameters=False)
def compose(run: Run) -> bool:
    """What to measure next, if anything."""
    return pipeline.compose(run)


def _measure_of(run: Run) -> Callable[[Run], None]:
    """Return the flow that measures where the run is measured."""
    if run.settings.run.engine == "local":
        return measure
    from flows.cluster.flow import measure as measure_on_cluster

    return measure_on_cluster


@flow(name="measure", validate_parameters=False, task_runner=_RUNNER)
def measure(run: Run) -> None:
    """Run the candidates, shard by shard."""
    with pipeline.measuring(run) as shards:
        for measured in [measure_shard.submit(run, shard) for shard in shards]:
            measured.result()


@task(name="measure shard", cache_policy=NO_CACHE)
def measure_shard(run: Run, shard: range) -> None:
    """Run some candidates; each is in the ledger as soon as it is finished."""
    pipeline.measure_shard(run, shard)


@flow(name="judge", validate_parameters=False)
def judge(run: Run) -> None:
    """One verdict per candidate."""
    pipeline.judge_run(run)


@flow(name="write", validate_parameters=False)
def write(run: Run) -> None:
    """The files of the run."""
    pipeline.write_run(run)
