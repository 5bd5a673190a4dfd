"""The life of one worker: read a job, run its stages in order, report each one's facts, end or go on.

Every stage is announced before it starts, so that the parent knows where a silent death happened, and
its facts are sent as soon as they are complete. The stage's own filters are asked at once; the first
reason ends the measuring, because nothing that costs more can change a rejection.
"""

import contextlib
import gc
import importlib
import linecache
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any

import torch

from filters.compiler_cache import IMPORTED
from filters.judging import first_finding
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Stage
from filters.verdict import Claim
from filters.worker import answers, building, compiling, observing, repeatability, trees
from filters.worker.channel import Channel
from filters.worker.conduct import Snapshot, Watch
from filters.worker.device_memory import DeviceMemory
from filters.worker.environment import here
from filters.worker.faults import CandidateFault, is_out_of_memory, one_line
from filters.worker.subject import Subject
from filters.worker.timing import Timer

Facts = dict[str, Any]
StageCall = tuple[Stage, Callable[[], Facts]]


_LIBRARIES = ("torch.", "triton.", "sympy.")
_GENERATED = ".compile_tasks."
_HASHES = (("torch._inductor.codecache", "torch_key"), ("triton.runtime.cache", "triton_key"))


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


def preload(names: Iterable[str]) -> None:
    """Import what the first compilation of a worker imported, and hash the libraries as it does.

    Both are the same in every worker, and take it more than a second.
    """
    for name in names:
        with contextlib.suppress(ImportError):  # a module that only exists inside another's import
            importlib.import_module(name)
    for module, hashing in _HASHES:
        getattr(sys.modules.get(module), hashing, lambda: None)()


def _use_own_headers() -> None:
    """Keep precompiled headers in this worker's cache; inductor chose their folder in the server."""
    codecache: Any = sys.modules.get("torch._inductor.codecache")
    if codecache is not None:
        codecache._HEADER_DIR = os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "headers")  # noqa: PTH118
        codecache._HEADER_LOCK_DIR = os.path.join(codecache._HEADER_DIR, "locks")  # noqa: PTH118


def run(connection: socket) -> None:
    """Serve the jobs of this process: one, or several that may share it."""
    channel = Channel(connection)
    sys.dont_write_bytecode = True
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    watch = None
    for job in channel.jobs():
        if watch is None:
            _set_up(job)
            watch = Watch()
        watch.events.clear()
        _serve(job, channel, watch)
        channel.send("end", kept_bytes=_forget_candidate() if job["stays"] else 0)


def _set_up(job: dict[str, Any]) -> None:
    torch.set_num_threads(job["threads"])
    if job["device"] == "cuda":
        _choose_card(job["card"])
    if job["mode"] != "environment":
        _use_own_headers()


def _serve(job: dict[str, Any], channel: Channel, watch: Watch) -> None:
    gc.collect()
    if job["mode"] == "environment":
        channel.send("facts", facts=here(job))
        return
    subject = Subject(device=torch.device(job["device"]), watch=watch, job=job)
    if job["device_bytes"] is not None:
        subject.memory = DeviceMemory(channel, job["device_bytes"])
    stages = {"measure": _stages, "digest": _digest_stages, "warm": _warm_stages}[job["mode"]]
    _run_stages(stages(subject, channel), subject, channel)


def _forget_candidate() -> int:
    """Drop what libraries keep of a candidate; return the device memory that is left all the same.

    Waits for the device: an error that only shows now ends this process before the next candidate.
    """
    sys.modules.pop("task", None)
    linecache.clearcache()
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    gc.freeze()  # what libraries keep; looking through it would take each later collection 80 ms
    if not torch.cuda.is_initialized():
        return 0
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()  # else the next one would seem to take less memory
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved()


def _choose_card(number: int | None) -> None:
    """Let this process see one of several devices only, so that it is `cuda:0` for everybody in it."""
    if number is not None:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        os.environ["CUDA_VISIBLE_DEVICES"] = visible.split(",")[number] if visible else str(number)
    # torch would ask NVML, which sees no device in some sandboxes where CUDA does
    torch.cuda._cached_device_count = torch._C._cuda_getDeviceCount()


def _bytes_to_conduct(subject: Subject) -> int:
    """Return what the checks keep at once: a second draw and three more outputs beside a forward."""
    inputs, outputs = trees.stored_bytes(subject.inputs), trees.stored_bytes(subject.output)
    return subject.bytes_of_forward() + inputs + 3 * outputs


def _bytes_to_compile(subject: Subject) -> int:
    """Return what is kept meanwhile; once compiled, the worker asks again."""
    return trees.stored_bytes([subject.state_of_model(), subject.inputs, subject.output])


def _bytes_to_compare(subject: Subject) -> int:
    """Return what a forward in double precision needs: everything is there again, and larger."""
    coarsest = compiling.lowest_precision(subject, trees.tensors(subject.output))
    inputs, outputs = trees.stored_bytes(subject.inputs), trees.stored_bytes(subject.output)
    return inputs + 2 * outputs + (8 // coarsest.itemsize) * subject.bytes_of_forward()


_NEEDS = {
    Stage.CONDUCT: _bytes_to_conduct,
    Stage.COMPILE: _bytes_to_compile,
    Stage.COMPARE: _bytes_to_compare,
}
"""Device memory to ask for before a stage; where none is named, the share of the stage before is enough."""


def _run_stages(stages: list[StageCall], subject: Subject, channel: Channel) -> None:
    policy = Policy.model_validate(channel.job["policy"])
    claim = Claim(**channel.job["claim"])
    measurement = Measurement()
    for stage, measure in stages:
        channel.send("stage", stage=stage)
        if stage in _NEEDS:
            subject.memory.ask(partial(_NEEDS[stage], subject))
        try:
            facts = _measured(subject, measure)
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


def _measured(subject: Subject, measure: Callable[[], Facts]) -> Facts:
    """Call a stage; memory that our own analysis ran out of counts like the candidate's."""
    try:
        return subject.memory.enough_for(measure)
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise CandidateFault("out_of_memory", one_line(error)) from error
        raise


def _digest_stages(subject: Subject, channel: Channel) -> list[StageCall]:
    return [(Stage.REPEATABILITY, lambda: repeatability.output_digest(subject))]


def _warm_stages(subject: Subject, channel: Channel) -> list[StageCall]:
    """Fill the compiler's cache, and list there what was imported for it."""
    before = set(sys.modules)

    def compile_stage() -> Facts:
        facts = compiling.compile_model(subject)[0]
        new = (name for name in sorted(set(sys.modules) - before) if name.startswith(_LIBRARIES))
        text = "\n".join(name for name in new if _GENERATED not in name)
        Path(os.environ["TORCHINDUCTOR_CACHE_DIR"], IMPORTED).write_text(text, encoding="utf-8")
        return facts

    return [(Stage.BUILD, lambda: building.build(subject)), (Stage.COMPILE, compile_stage)]


def _stages(subject: Subject, channel: Channel) -> list[StageCall]:
    """Return the stages in the order of their cost, which is the order of the judging."""
    before = Snapshot()
    timer = Timer(subject, channel)
    compiled: list[Any] = []

    def compile_stage() -> Facts:
        facts, model, output = compiling.compile_model(subject)
        compiled.extend([model, output])
        return facts

    def compare_stage() -> Facts:
        model, output = compiled
        facts = compiling.compare(subject, output)
        subject.memory.ask(
            lambda: compiling.bytes_to_run(subject) + trees.stored_bytes([subject.inputs, output])
        )
        facts |= timer.compiled(model)
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
