"""The life of one worker: read a job, run its stages in order, report each one's facts, end.

Every stage is announced before it starts, so that the parent knows where a silent death happened, and
its facts are sent as soon as they are complete. The stage's own filters are asked at once; the first
reason ends the measuring, because nothing that costs more can change a rejection.
"""

import gc
import logging
import os
import sys
import warnings
from collections.abc import Callable
from socket import socket
from typing import Any

import torch

from filters.judging import first_finding
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Stage
from filters.verdict import Claim
from filters.worker import answers, building, clock, compiling, observing, repeatability
from filters.worker.channel import Channel
from filters.worker.conduct import Snapshot, Watch
from filters.worker.environment import here
from filters.worker.subject import CandidateFault, Subject, is_out_of_memory, one_line

Facts = dict[str, Any]
StageCall = tuple[Stage, Callable[[], Facts]]


def preload_compiler() -> None:
    """Import what torch.compile needs, so that forked children share it.

    The first compilation patches `nn.Module`. That happens here, so that it is no candidate's side effect:
    control-flow operators compile when they are called. Nothing is compiled here, because dynamo asks the
    GPU, and CUDA must not be initialised before the fork.
    """
    import torch._dynamo
    import torch._inductor.codegen.cpp
    import torch._inductor.compile_fx
    import torch._inductor.scheduler  # noqa: F401
    from torch._dynamo.mutation_guard import install_generation_tagging_init

    install_generation_tagging_init()


def _use_own_headers() -> None:
    """Keep precompiled headers in this worker's cache; inductor chose their folder in the server."""
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if codecache is not None:
        codecache._HEADER_DIR = os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "headers")  # noqa: PTH118
        codecache._HEADER_LOCK_DIR = os.path.join(codecache._HEADER_DIR, "locks")  # noqa: PTH118


def run(connection: socket) -> None:
    """Serve the one job of this process."""
    channel = Channel(connection)
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_num_threads(channel.job["threads"])
    gc.collect()
    mode = channel.job["mode"]
    if mode == "environment":
        channel.send("facts", facts=here(channel.job))
    else:
        _use_own_headers()
        _cap_device_memory(channel.job.get("device_memory_bytes"))
        subject = Subject(device=torch.device(channel.job["device"]), watch=Watch(), job=channel.job)
        stages = {"measure": _stages, "digest": _digest_stages, "warm": _warm_stages}[mode](subject, channel)
        _run_stages(stages, channel)
    channel.send("end")


def _cap_device_memory(cap_bytes: int | None) -> None:
    if cap_bytes is not None:
        torch.cuda.set_per_process_memory_fraction(
            cap_bytes / torch.cuda.get_device_properties(0).total_memory
        )


def _run_stages(stages: list[StageCall], channel: Channel) -> None:
    policy = Policy.model_validate(channel.job["policy"])
    claim = Claim(**channel.job["claim"])
    measurement = Measurement()
    for stage, measure in stages:
        channel.send("stage", stage=stage)
        try:
            facts = _measured(measure)
        except CandidateFault as fault:
            if fault.fault == "contract":
                channel.send("facts", facts={"contract_fault": fault.detail})
            else:
                channel.send("fault", fault=fault.fault, detail=fault.detail)
            return
        channel.send("facts", facts=facts, done=stage)
        measurement = measurement.with_facts(facts)
        if first_finding(measurement, policy, claim, only=stage) is not None:
            return


def _measured(measure: Callable[[], Facts]) -> Facts:
    """Call a stage; memory that our own analysis ran out of counts like the candidate's."""
    try:
        return measure()
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise CandidateFault("out_of_memory", one_line(error)) from error
        raise


def _digest_stages(subject: Subject, channel: Channel) -> list[StageCall]:
    return [(Stage.REPEATABILITY, lambda: repeatability.output_digest(subject))]


def _warm_stages(subject: Subject, channel: Channel) -> list[StageCall]:
    """Fill the compiler's cache; the time counts as that of a build."""
    return [
        (Stage.BUILD, lambda: building.build(subject)),
        (Stage.COMPILE, lambda: compiling.compile_model(subject)[0]),
    ]


def _stages(subject: Subject, channel: Channel) -> list[StageCall]:
    """Return the stages in the order of their cost, which is the order of the judging."""
    before = Snapshot()
    timer = _Timer(subject, channel)
    compiled: list[Any] = []

    def compile_stage() -> Facts:
        facts, model, output = compiling.compile_model(subject)
        compiled.extend([model, output])
        return facts

    def compare_stage() -> Facts:
        model, output = compiled
        facts = compiling.compare(subject, output) | timer.compiled(model)
        building.run_as_users_do(subject)
        return facts

    return [
        (Stage.BUILD, lambda: building.build(subject)),
        (Stage.CONDUCT, lambda: building.conduct(subject, before)),
        (Stage.REPEATABILITY, lambda: repeatability.repeatability(subject)),
        (Stage.OUTPUT, lambda: answers.output(subject)),
        (Stage.DEGENERATE, lambda: answers.degenerate(subject)),
        (Stage.LABELS, lambda: observing.labels(subject)),
        (Stage.RUNTIME, lambda: timer.eager() | building.side_effects(subject, before)),
        (Stage.COMPILE, compile_stage),
        (Stage.COMPARE, compare_stage),
    ]


class _Timer:
    """Times eager and compiled forwards, alone on the machine; hands recorded times through instead."""

    def __init__(self, subject: Subject, channel: Channel) -> None:
        self._subject = subject
        self._channel = channel
        self._recorded: Facts = channel.job["recorded_times"] or {}

    def eager(self) -> Facts:
        """Facts of the stage `runtime`."""
        return self._time("eager", self._subject.model) | {"tensor_time_share": self._share()}

    def compiled(self, model: Any) -> Facts:
        """Run times of the compiled model."""
        return self._time("compile", model)

    def _share(self) -> float:
        recorded = self._recorded.get("tensor_time_share")
        if recorded is not None:
            return recorded
        with self._channel.exclusive():
            return observing.tensor_time_share(self._subject)

    def _time(self, prefix: str, model: Any) -> Facts:
        names = {"median_ms": f"{prefix}_ms", "iqr_ms": f"{prefix}_ms_iqr", "samples": f"{prefix}_samples"}
        recorded = {column: self._recorded.get(column) for column in names.values()}
        if None not in recorded.values():
            return recorded
        policy = self._channel.job["policy"]
        inputs = self._subject.fresh_inputs()
        with torch.no_grad(), self._channel.exclusive():
            timing = clock.Clock(self._subject.device).time(
                lambda: model(*inputs), (policy["eager_ms_min"], policy["eager_ms_max"])
            )
        return {column: getattr(timing, name) for name, column in names.items()}
