"""The driver's side of a run on a cluster: hands out shards, takes what they finish, bears their loss.

It alone writes the ledger. Where a shard is lost, with its node or by itself, its unfinished candidates are
handed out once more; lost again, they are set aside as `infrastructure` until the next start.
"""

import dataclasses
import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import ray
from prefect.states import State
from prefect_ray.task_runners import PrefectRayFuture
from ray.actor import ActorHandle
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from composer.candidate import Candidate
from data.ledger import Ledger
from filters.engine import usual_workers
from filters.environment import Environment
from filters.measurement import Measurement
from filters.reasons import Reason
from flows.cluster.connection import slots
from flows.cluster.mailbox import Began, Finished, Judged, Mailbox, Message
from flows.cluster.shard import Shard
from flows.errors import InfrastructureError, UsageError
from flows.progress import Progress
from flows.run_folder import RunFolder
from flows.settings import Settings

SHARDS_MAX = 512
"""Shards of a round at most: Prefect keeps a record of each."""
PER_WORKER = 18
"""Candidates of a shard for each worker: some minutes at the ten seconds that one takes."""
LOSSES_MAX = 2
"""A shard that is lost so often is set aside: its candidates may be the cause."""

_TAKE_SECONDS = 0.3
_STOP_SECONDS = 30
"""Time that shards get to end their workers; then Ray ends them."""
_CALLS_MAX = 10_000
"""Calls that may wait in the mailbox at once: one of each shard, and one of each worker."""

Submit = Callable[["ray.ObjectRef[Shard]", ActorHandle], "PrefectRayFuture[None]"]


class Cluster:
    """A `flows.site.Site`; Ray is connected for as long as it lives."""

    def __init__(
        self,
        settings: Settings,
        timings: Mapping[str, dict[str, Any]] | None,
        ledger: Ledger,
        folder: RunFolder,
    ) -> None:
        self._settings = settings
        self._timings = timings
        self._ledger = ledger
        self._folder = folder
        self._stopping = threading.Event()
        self._refusal: UsageError | None = None
        self._left: dict[int, dict[str, Candidate]] = {}
        """What each shard that is under way has not finished, by id."""
        self._begun: set[int] = set()
        self._numbers = iter(range(sys.maxsize))
        self.slots = slots(settings.filters.device)
        self.device = self.slots.device
        self.progress = Progress()
        self.environments: list[Environment] = []
        self.set_aside: set[str] = set()

    def __enter__(self) -> Self:
        """Look up what earlier starts were measured on, and open the mailbox. Raises UsageError."""
        mixed = self._settings.run.mixed_devices
        if self._folder.environment.exists():
            self.environments = self._folder.read_environments()
        if len(self.environments) > 1 and not mixed:
            raise UsageError(f"{self._folder.path}: holds rows of several devices; give --mixed-devices")
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox: Any = (  # an actor's methods have types that only Ray knows
            ray.remote(Mailbox)
            .options(num_cpus=0, max_concurrency=_CALLS_MAX, scheduling_strategy=here)
            .remote(self.environments, mixed=mixed)
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._stopping.set()
        ray.kill(self._mailbox)

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Let all shards end."""
        self._stopping.set()

    def shard_size(self, count: int) -> int:
        """Return a size that takes minutes, but keeps every slot of the cluster busy."""
        usual = usual_workers(self.slots.device, self.slots.cores, cards=1)
        workers = self._settings.filters.workers or usual
        minutes = max(PER_WORKER * workers, math.ceil(count / SHARDS_MAX))
        return max(1, min(minutes, math.ceil(count / self.slots.count)))

    def measure(self, groups: Iterable[Sequence[Candidate]], submit: Submit) -> None:
        """Measure each group as a shard; what is finished is in the ledger.

        Raises UsageError where devices would be mixed, SandboxFault and InfrastructureError.
        """
        under_way = _submitted(map(self._shard, groups), submit, self._mailbox)
        ended_at = math.inf
        while under_way:
            done, _ = ray.wait(list(under_way), num_returns=len(under_way), timeout=0)
            self._take(ray.get(self._mailbox.take.remote(0 if done else _TAKE_SECONDS)))
            for shard, future in map(under_way.pop, done):
                unfinished = list(self._left.pop(shard.number).values())
                if not self._is_complete(future, shard, len(unfinished)):
                    again = self._once_more(shard, unfinished)
                    under_way |= _submitted(again, submit, self._mailbox)
            if self.stopped:
                ended_at = min(ended_at, time.monotonic() + _STOP_SECONDS)
                self._end(under_way, by_force=time.monotonic() > ended_at)
        if self._refusal:
            raise self._refusal

    def _shard(self, candidates: Sequence[Candidate], losses: int = 0) -> Shard:
        number = next(self._numbers)
        self._left[number] = {candidate.id: candidate for candidate in candidates}
        known = self._timings
        return Shard(
            number=number,
            candidates=tuple(candidates),
            losses=losses,
            settings=self._settings.filters.model_copy(update={"device": self.device}),
            policy=self._settings.policy,
            timings=known and {each.id: known[each.id] for each in candidates if each.id in known},
            unsafe=self._settings.run.unsafe,
            cores=self.slots.cores,
        )

    def _take(self, messages: Sequence[Message]) -> None:
        """Put what is finished into the ledger, all of it at once."""
        for message in messages:
            if isinstance(message, Began):
                self._begun.add(message.shard)
                self._join(message)
        finished = [message for message in messages if isinstance(message, Finished)]
        self._ledger.put_records([(each.id, each.environment, each.lost, each.record) for each in finished])
        judged = [message for message in messages if isinstance(message, Judged)]
        self._ledger.keep_judged([each.record for each in judged if each.record])
        for message in messages:
            if isinstance(message, Judged):
                self.progress.advance(accepted=message.accepted)
            if not isinstance(message, Began):
                self._left.get(message.shard, {}).pop(message.id, None)

    def _join(self, began: Began) -> None:
        """Count an environment among the run's, or stop because it is another one."""
        if began.environment in self.environments:
            return
        if began.admitted:
            self.environments.append(began.environment)
            self._folder.write_environments(self.environments)
        elif self._refusal is None:
            differing = _difference(self.environments[0], began.environment)
            self._refusal = UsageError(
                f"{self._folder.path}: one run holds rows of one device, but node {began.node} differs from "
                f"where it was measured so far: {differing}. Make the nodes equal, leave that one out, or "
                "give --mixed-devices"
            )
            self.stop()

    def _is_complete(self, future: "PrefectRayFuture[None]", shard: Shard, unfinished: int) -> bool:
        """Return whether a shard came to its end, telling the user where it did not.

        Raises what it raised itself.
        """
        future.wait()
        state = future.state
        if state.is_failed():
            future.result()  # raises
        if not state.is_crashed() or self.stopped:
            return True
        print(
            f"opweaver: a shard was lost, {unfinished:,} of its {len(shard.candidates):,} candidates are not "
            f"measured: {_cause(state)}",
            file=sys.stderr,
        )
        return False

    def _once_more(self, shard: Shard, unfinished: Sequence[Candidate]) -> list[Shard]:
        """Return what a lost shard had not finished as another one; set it aside if it is lost too often."""
        if not unfinished:
            return []
        if shard.losses + 1 < LOSSES_MAX:
            return [self._shard(unfinished, shard.losses + 1)]
        if not self.environments:
            raise InfrastructureError("Ray: no shard could start on any node; see `opweaver doctor` there")
        fault = Measurement(fault=Reason.WORKER_LOST, fault_detail=f"its shard was lost {LOSSES_MAX} times")
        key, record = self.environments[0].key, fault.to_json()
        self._ledger.put_records([(candidate.id, key, True, record) for candidate in unfinished])
        self.set_aside |= {candidate.id for candidate in unfinished}
        return []

    def _end(self, under_way: Mapping["ray.ObjectRef", tuple[Shard, Any]], *, by_force: bool) -> None:
        """Let shards end that have begun, and take back those that have not."""
        self._mailbox.stop.remote()
        for ref, (shard, _) in under_way.items():
            if by_force or shard.number not in self._begun:
                ray.cancel(ref, force=True)


def _submitted(
    shards: Iterable[Shard], submit: Submit, mailbox: ActorHandle
) -> dict["ray.ObjectRef", tuple[Shard, "PrefectRayFuture[None]"]]:
    """Hand shards out, and return them by Ray's own names."""
    futures = [(shard, submit(ray.put(shard), mailbox)) for shard in shards]
    return {future.wrapped_future: (shard, future) for shard, future in futures}


def _difference(one: Environment, other: Environment) -> str:
    values = dataclasses.asdict(other)
    return ", ".join(
        f"{name} {value!r} and {values[name]!r}"
        for name, value in dataclasses.asdict(one).items()
        if value != values[name]
    )


def _cause(state: State[Any]) -> str:
    """Return the first line of what Ray says of a crash."""
    return (state.message or "no message").strip().splitlines()[0][:200]
