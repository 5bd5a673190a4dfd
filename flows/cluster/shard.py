"""What runs on a node: one shard of candidates on one engine, confined to what Ray gave it."""

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ray
from ray.actor import ActorHandle

from composer.candidate import Candidate
from filters.engine import Engine
from filters.errors import SandboxFault
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason
from filters.settings import FilterSettings
from filters.verdict import Verdict
from flows.cluster.mailbox import Finished, Judged
from flows.judging import judged_record
from flows.measuring import Measuring

_WATCH_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Some candidates, and all that a node must know to measure them."""

    number: int
    candidates: tuple[Candidate, ...]
    losses: int
    """How often a shard with these candidates was lost before."""
    settings: FilterSettings
    """With the device of the cluster."""
    policy: Policy
    timings: Mapping[str, dict[str, Any]] | None
    unsafe: bool
    cores: int
    """CPU slots that the shard holds."""


def measure(shard: Shard, mailbox: ActorHandle) -> None:
    """Measure the candidates and hand in each as it is finished. Raises SandboxFault with the node's name."""
    node = socket.gethostname()
    _keep_to(shard.cores)
    try:
        with Engine(shard.settings, shard.policy, shard.timings, unsafe=shard.unsafe) as engine:
            if not ray.get(mailbox.begin.remote(shard.number, node, engine.environment)):
                return
            reports = Reports(shard, engine.environment.key, mailbox)
            measuring = Measuring(engine, shard.policy, reports.keep, reports)
            with _stopped_by(mailbox, measuring.stop):
                measuring.measure(shard.candidates)
            reports.flush()
    except SandboxFault as fault:
        raise SandboxFault(f"node {node}: {fault}") from fault


class Reports:
    """Takes what `Measuring` finds and hands it to the driver; may be told from many threads."""

    def __init__(self, shard: Shard, environment: str, mailbox: ActorHandle) -> None:
        self._shard = shard.number
        self._policy = shard.policy
        self._environment = environment
        self._mailbox = mailbox
        self._lock = threading.Lock()
        self._sent: list[ray.ObjectRef] = []

    def keep(self, candidate: Candidate, measurement: Measurement) -> None:
        """Hand in a measurement; returns once it cannot be lost any more."""
        finished = Finished(
            shard=self._shard,
            id=candidate.id,
            environment=self._environment,
            lost=measurement.fault == Reason.WORKER_LOST,
            record=measurement.to_json(),
        )
        ray.get(self._mailbox.put.remote(finished))

    def judged(self, candidate: Candidate, measurement: Measurement | None, verdict: Verdict) -> None:
        """Tell that a candidate needs nothing more, and all that the driver must know to count it."""
        judged = Judged(
            shard=self._shard,
            id=candidate.id,
            accepted=verdict.outcome == "accepted",
            record=judged_record(candidate, measurement, verdict, self._environment, self._policy),
        )
        with self._lock:
            self._sent.append(self._mailbox.put.remote(judged))

    def flush(self) -> None:
        """Wait until all has arrived."""
        ray.get(self._sent)
        self._sent.clear()  # Ray keeps a process for as long as it owns anything


def _keep_to(cores: int) -> None:
    """Stay on the share of the node's cores that belongs to the GPU, so that shards do not meet on one.

    A shard without a GPU has the node for itself.
    """
    gpus = [str(id) for id in ray.get_gpu_ids()]
    present = sorted(os.sched_getaffinity(0))
    if len(gpus) == 1 and gpus[0].isdigit() and cores < len(present):
        first = int(gpus[0]) * cores % len(present)
        os.sched_setaffinity(0, (present + present)[first : first + cores])


@contextmanager
def _stopped_by(mailbox: ActorHandle, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` if the driver says so, or is gone, while the block runs."""
    stopping: ray.ObjectRef[None] = mailbox.until_stopped.remote()
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            if ray.wait([stopping], timeout=_WATCH_SECONDS)[0]:  # told to, or it is gone
                stop()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        ray.cancel(stopping)
