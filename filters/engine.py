"""Runs candidates through workers, several at once, and returns what was seen of each.

Workers are forked from a server that has torch loaded, and killed from outside when a limit is exceeded; see
`filters.crew` for who shares one. A second server with another hash seed repeats the forward in processes
that never saw the first.
"""

import contextlib
import math
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from composer.candidate import Candidate
from filters.admission import FIRST_BYTES, MemoryBudget, Share
from filters.card import Card, Slots, visible_cards
from filters.compiler_cache import CompilerCache
from filters.conversation import Conversation
from filters.crew import Crew
from filters.environment import Environment
from filters.errors import Interrupted, SandboxFault
from filters.judge import claim_of
from filters.limits import Limits
from filters.measurement import Measurement
from filters.policy import Policy
from filters.sandbox.layers import Layer, LayerName, usable
from filters.settings import FilterSettings
from filters.spawner import Spawner

_WORKERS_MAX = 16
_WORKERS_OF_A_CARD = 8
"""More wait for its memory: 8 and 12 are equally fast on an H200 with 16 cores; see `benchmarks/NOTES.md`."""
_FIRST_HASH_SEED, _OTHER_HASH_SEED = 0, 1
_WARMING_TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        return torch.sigmoid(self.norm(self.linear(x))) * 2


def get_inputs():
    return [torch.randn(128, 64)]


def get_init_inputs():
    return []
"""


def usual_workers(device: str, cores: int, cards: int) -> int:
    """Return how many candidates run at once where the settings do not say."""
    return min(cores, _WORKERS_MAX if device == "cpu" else _WORKERS_OF_A_CARD * cards)


class Engine:
    """A context manager; `measure` may be called from as many threads as there are workers."""

    def __init__(
        self,
        settings: FilterSettings,
        policy: Policy,
        timings: Mapping[str, dict[str, Any]] | None = None,
        *,
        unsafe: bool = False,
    ) -> None:
        """`unsafe` lets foreign code run where no sandbox works."""
        self._settings = settings
        self._policy = policy
        self._timings = timings or {}
        self._unsafe = unsafe
        self.passed_over: dict[LayerName, str] = {}
        """Sandboxes that passed their trial, but not with real workers inside, and why."""
        self._stopping = threading.Event()
        self.device = _device(settings.device)
        cores = len(os.sched_getaffinity(0))
        self.workers = settings.workers or usual_workers(self.device, cores, visible_cards(self.device))
        self._threads = cores if self.device == "cpu" else max(1, cores // self.workers)

    def __enter__(self) -> Self:
        """Start both servers, ask the machine what it is and warm the compiler's cache."""
        with contextlib.ExitStack() as stack:
            try:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="opweaver-"))
                self._scratch = Path(folder).resolve()
            except OSError as error:
                raise SandboxFault(f"no scratch folder: {error}. Set TMPDIR to a writable place.") from error
            self._cache = CompilerCache(self._scratch)
            self._crew = Crew(self._scratch, self._cache, self._settings.candidates_per_worker)
            stack.callback(self._crew.close)
            stack.enter_context(self._strongest_layer())
            self._slots = Slots(self.cards, self.workers)
            self._stack = stack.pop_all()
        return self

    def _strongest_layer(self) -> contextlib.ExitStack:
        """Start the servers in the first layer in which they work, which only they can tell."""
        *stronger, last = usable(self._settings.sandbox)
        for layer in stronger:
            try:
                return self._start_servers(layer)
            except SandboxFault as fault:
                self.passed_over[layer.name] = str(fault)
        return self._start_servers(last)

    def _start_servers(self, layer: Layer) -> contextlib.ExitStack:
        with contextlib.ExitStack() as stack:
            self.sandbox: LayerName = layer.name
            self._main = Spawner(_FIRST_HASH_SEED, layer, self._scratch, compiles=True)
            stack.callback(self._main.close)
            self._twin = Spawner(_OTHER_HASH_SEED, layer, self._scratch, compiles=False)
            stack.callback(self._twin.close)
            self._main.wait_ready()
            self._twin.wait_ready()
            self.environment, self.cards = self._ask_environment()
            if self._settings.compile_backend == "inductor":
                self._warm_compiler()
                self._main.preload(self._cache.imported())
                self._ask_environment()  # once more: whoever is forked from now on must be able to
            return stack.pop_all()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._stack.close()

    def stop(self) -> None:
        """Kill every child at once; `measure` calls under way raise Interrupted."""
        self._stopping.set()
        self._main.close()
        self._twin.close()

    def measure(self, candidate: Candidate) -> Measurement:
        """Run one candidate. Blocks until a slot is free and the facts are complete.

        Raises Interrupted after `stop`, SandboxFault if the machinery fails or may not run the candidate.
        """
        if self.sandbox == "none" and candidate.origin == "foreign" and not self._unsafe:
            tried = "".join(f" ({name}: {why_not})" for name, why_not in self.passed_over.items())
            raise SandboxFault(
                f"{candidate.name}: code that our own rules did not write runs only in a sandbox{tried}. "
                "See `opweaver doctor` for why there is none, or allow it with --unsafe."
            )
        with self._slots.one() as card:
            measurement = self._run(card, self._main, candidate, "measure")
            if measurement.output_digest is None or measurement.fault == "worker_lost":
                return measurement
            twin = self._run(card, self._twin, candidate, "digest", measurement.peak_memory_mb)
            if twin.fault == "worker_lost":
                return measurement.with_facts({"fault": "worker_lost", "fault_detail": twin.fault_detail})
            return measurement.with_facts(
                {"fresh_process_equal": twin.output_digest == measurement.output_digest}
            )

    def _run(
        self, card: Card, spawner: Spawner, candidate: Candidate, mode: str, peak_mb: float | None = None
    ) -> Measurement:
        """Run one job; again where everybody waited for the device's memory and it had to give up.

        `peak_mb` is what a forward of the candidate took in another process, once that is known.
        """
        job = self._job(candidate, mode) | {"peak_mb": peak_mb}
        if card.memory is None:
            return self._converse(spawner, job, card).measurement()
        first = FIRST_BYTES
        while True:
            with card.memory.share(first) as share:
                conversation = self._converse(spawner, job, card, share)
            if conversation.crowded is None:
                return conversation.measurement()
            first = conversation.crowded.wanted_bytes

    def _converse(
        self,
        spawner: Spawner,
        job: dict[str, Any],
        card: Card,
        share: Share | None = None,
        *,
        keep_cache: bool = False,
    ) -> Conversation:
        """Run one job in one worker and return the finished conversation."""
        job = job | {"card": card.number, "device_bytes": share.bytes if share else None}
        if self._stopping.is_set():
            raise Interrupted
        with self._crew.worker(spawner, card, stays=job["stays"]) as worker:
            conversation = Conversation(worker, job, self._limits(), self._stopping, share)
            conversation.hold()
            if keep_cache and "compile_seconds" in conversation.answers:
                self._cache.take_from(worker.scratch)
        if self._stopping.is_set():
            raise Interrupted
        return conversation

    def _stays(self, candidate: Candidate) -> bool:
        """Whether others may share its process: a context takes a GPU long to start, and own code is safe."""
        shares = self._settings.candidates_per_worker > 1 and candidate.origin != "foreign"
        return shares and self.device == "cuda"

    def _limits(self) -> Limits:
        settings = self._settings
        memory = settings.memory_gib or (2.0 if self.device == "cpu" else 12.0)
        return Limits(
            stage_seconds=settings.build_seconds,
            timing_seconds=settings.timing_seconds,
            compile_seconds=settings.compile_seconds,
            memory_bytes=math.ceil(memory * (1 << 30)),
        )

    def _job(self, candidate: Candidate, mode: str) -> dict[str, Any]:
        claim = claim_of(candidate)
        return self._base_job(mode) | {
            "stays": self._stays(candidate),
            "code": candidate.code,
            "policy": self._policy.model_dump(),
            "claim": {"requested_ops": list(claim.requested_ops), "whole_layer": claim.whole_layer},
            "recorded_times": self._timings.get(candidate.id),
        }

    def _base_job(self, mode: str) -> dict[str, Any]:
        return {
            "mode": mode,
            "stays": False,
            "device": self.device,
            "threads": self._threads,
            "compile_backend": self._settings.compile_backend,
        }

    def _ask_environment(self) -> tuple[Environment, Sequence[Card]]:
        conversation = self._converse(self._main, self._base_job("environment"), Card())
        if not conversation.answers:
            raise SandboxFault(f"the device {self.device} does not answer: {conversation.fault_text()}")
        found = conversation.answers.pop("cards")
        environment = Environment.from_dict(conversation.answers)
        names = {card["name"] for card in found}
        if len(names) > 1:
            raise SandboxFault(
                f"devices of several kinds here: {', '.join(sorted(names))}; times of one say nothing of "
                "another. Choose with CUDA_VISIBLE_DEVICES."
            )
        cards = [
            Card(number=number if len(found) > 1 else None, memory=MemoryBudget(card["bytes"]))
            for number, card in enumerate(found)
        ]
        return environment, cards or [Card()]

    def _warm_compiler(self) -> None:
        """Compile one small task and keep the compiler's cache: later children start from a copy of it."""
        job = self._job(Candidate(index=0, name="warm-up", code=_WARMING_TASK), "warm")
        conversation = self._converse(self._main, job, self.cards[0], keep_cache=True)
        if not self._cache.is_warm:
            raise SandboxFault(
                f"torch.compile does not work here: {conversation.fault_text()}. Run `opweaver doctor`."
            )


def _device(wanted: str) -> str:
    """Resolve `auto` without touching CUDA: a device node tells."""
    present = Path("/dev/nvidia0").exists() or Path("/dev/dxg").exists()
    if wanted == "cuda" and not present:
        raise SandboxFault("no CUDA device here. Use --device cpu.")
    return ("cuda" if present else "cpu") if wanted == "auto" else wanted
