"""Stages build and conduct: does it run at all, at what size, and does it behave?"""

from typing import Any

import torch

from filters.worker import trees
from filters.worker.conduct import Canaries, Snapshot
from filters.worker.faults import CandidateFault
from filters.worker.quick_draws import OnlyDraws
from filters.worker.subject import DRAWS, Subject, resident_peak_bytes

GIB = 1 << 30
_SIZES_FIRST = 5
"""Device memory to ask for before anything has run, in sizes of inputs and parameters: three draws, and room
for intermediate results. Whoever needs more runs out of it and gets more."""
_ROOM_GIB = 1.0
"""For pieces of memory that the allocator cannot use."""


def build(subject: Subject) -> dict[str, Any]:
    """Load, construct, draw inputs, and run the first forward. Facts of the stage `build`.

    Raises CandidateFault, also where that takes more memory than any task may.
    """
    policy = subject.job["policy"]
    allowed_gib = policy["peak_memory_gib_max"] + policy["input_gib_max"]  # we keep a copy of the inputs
    with subject.memory.at_most((allowed_gib + _ROOM_GIB) * GIB):
        return _built(subject)


def _built(subject: Subject) -> dict[str, Any]:
    start_bytes = resident_peak_bytes()
    subject.load()
    subject.build()
    drawn = subject.draw(0)
    subject.memory.ask(lambda: _SIZES_FIRST * trees.stored_bytes([drawn, subject.state_of_model()]))
    subject.inputs = subject.copy(drawn)
    facts: dict[str, Any] = {"contract_fault": "", **_input_facts(subject.inputs)}
    facts["inputs_fixed"] = all(trees.same_bits(subject.inputs, subject.draw(n)) for n in range(1, DRAWS))
    facts["n_params"] = sum(p.numel() for p in subject.model.parameters())
    if facts["inputs_fixed"] or facts["input_bytes"] > subject.job["policy"]["input_gib_max"] * GIB:
        return facts
    if subject.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(subject.device)
        before = torch.cuda.memory_allocated(subject.device)
        subject.output = subject.forward(drawn)
        peak = torch.cuda.max_memory_allocated(subject.device)
        subject.intermediate_bytes = peak - before
        peak -= trees.stored_bytes(subject.inputs)  # our own copy
    else:
        subject.output = subject.forward(drawn)
        peak = resident_peak_bytes() - start_bytes
    facts["peak_memory_mb"] = round(peak / 1e6, 1)
    return facts


def _input_facts(inputs: list[Any]) -> dict[str, Any]:
    found = trees.tensors(inputs)
    return {
        "input_shapes": [list(t.shape) for t in found],
        "input_dtypes": [trees.dtype_name(t) for t in found],
        "input_bytes": sum(t.numel() * t.element_size() for t in found),
    }


def conduct(subject: Subject, before: Snapshot) -> dict[str, Any]:
    """Run one forward over inputs of which a copy is kept. Facts of the stage `conduct`."""
    inputs = subject.fresh_inputs()
    versions = [[t._version for t in trees.tensors(item)] for item in inputs]
    canaries = Canaries(trees.tensors([inputs, subject.output]))
    subject.forward(inputs)
    mutated = [
        position
        for position, (item, kept) in enumerate(zip(inputs, subject.inputs, strict=True))
        if [t._version for t in trees.tensors(item)] != versions[position] or not trees.same_bits(item, kept)
    ]
    if not canaries.intact():
        subject.watch.events.add("wrote to tensors that are not its own")
    return {**side_effects(subject, before), "mutated_inputs": mutated}


def side_effects(subject: Subject, before: Snapshot) -> dict[str, Any]:
    """Return what the candidate has changed in its process so far."""
    return {"side_effects": sorted({*subject.watch.events, *before.changes()})}


def run_as_users_do(subject: Subject) -> None:
    """Run a forward over inputs that are built on the CPU and moved: the users of a row do that.

    Raises CandidateFault where it fails, or gives an output of another structure. Not needed where those
    inputs can only look like the ones that were drawn on the device.
    """
    if subject.device.type == "cpu" or _drawn_alike(subject):
        return
    output = subject.forward(subject.draw(0, made_on_cpu=True))
    if trees.structure(output) != trees.structure(subject.output):
        detail = "inputs that were built on the CPU and moved give an output of another structure"
        raise CandidateFault("forward_failed", detail)


def _drawn_alike(subject: Subject) -> bool:
    """True where inputs are plain draws, which have the same sizes, dtypes and strides on every device."""
    draws = OnlyDraws()
    with subject.guard("inputs_failed", "get_inputs"), subject.device, draws:
        inputs = subject.task.get_inputs()
    return draws.alike and all(isinstance(leaf, torch.Tensor | int | float) for leaf in trees.leaves(inputs))
