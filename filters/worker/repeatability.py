"""Stage repeatability: is the task a pure function of its inputs and weights, bit for bit?"""

from typing import Any

import torch

from filters.worker import trees
from filters.worker.carried import state_digest
from filters.worker.faults import CandidateFault
from filters.worker.randomness import advanced, seed_all, states
from filters.worker.scatter import ScatterTargets
from filters.worker.set_order import turned_round, uses_sets
from filters.worker.subject import Subject
from filters.worker.ties import TieOrder, undefined_order

_OUTPUTS = 5
"""As many of draw 0 are compared. One repeat misses low-entropy cases; torchfuzz repeats six times."""
_POISON_BYTES_MAX = 1 << 30


def repeatability(subject: Subject) -> dict[str, Any]:
    """Facts of the stage `repeatability`. Leaves `subject.output` as the output for draw 0.

    A forward leaves its inputs alone, or the stage before would have ended this: they are used again.
    """
    seed_all(7)
    before = states(subject.device)
    first = subject.forward(subject.inputs)
    consumed = advanced(before, states(subject.device))
    state = state_digest(subject.model, subject.task)

    seed_all(8)
    seed_changes_output = not trees.same_bits(first, subject.forward(subject.inputs))
    repeats_equal = trees.same_bits(subject.output, first)
    for _ in range(_OUTPUTS - 3):
        _poison(first)
        repeats_equal = repeats_equal and trees.same_bits(first, subject.forward(subject.inputs))
    state_changed = state_digest(subject.model, subject.task) != state
    facts = {
        "rng_consumed": list(consumed),
        "seed_changes_output": seed_changes_output,
        "repeats_equal": repeats_equal and not _reads_unwritten_memory(subject),
        "state_changed": state_changed or (repeats_equal and _remembers_other_inputs(subject, first)),
        "repeated_scatter_targets": _undefined_choice(subject) or "",
        "output_digest": trees.digest(subject.output),
        "train_eval_same": _train_mode_agrees(subject, first),
    }
    subject.output = first
    return facts


def _undefined_choice(subject: Subject) -> str | None:
    """Name the operator that leaves open which of several writes, or of several equal elements, wins."""
    with TieOrder(reverse=False) as ties, ScatterTargets() as scatter:
        one = subject.forward(subject.inputs)
    if scatter.repeated or ties.called is None:
        return scatter.repeated
    with TieOrder(reverse=True):
        other = subject.forward(subject.inputs)
    return undefined_order(one, other, ties.called)


def _remembers_other_inputs(subject: Subject, first: Any) -> bool:
    """True where a forward on another draw changes what is, or was, returned for draw 0."""
    kept = subject.output
    if trees.share_memory(first, kept):  # then both are the model's own
        kept = trees.map_tensors(first, torch.clone)
    subject.forward(subject.draw(1))
    if not trees.same_bits(first, kept):
        return True
    return not trees.same_bits(first, subject.forward(subject.inputs))


def output_digest(subject: Subject) -> dict[str, Any]:
    """Build and run for the comparison with another process; once more where an order of sets may count."""
    subject.load()
    subject.build()
    subject.memory.ask(lambda: subject.job["peak_mb"] * 1e6)
    digests = [_digest_of_forward(subject)]
    if uses_sets(subject.job["code"]):
        subject.load(own_sets=True)
        with turned_round():
            subject.build()
            digests.append(_digest_of_forward(subject))
        digests.append(_digest_of_forward(subject))
    return {"output_digest": " or ".join(dict.fromkeys(digests))}


def _digest_of_forward(subject: Subject) -> str:
    return trees.digest(subject.forward(subject.draw(0)))


def _train_mode_agrees(subject: Subject, eval_output: Any) -> bool | None:
    """Compare one forward in train mode, on a copy; None where the model cannot be copied."""
    try:
        trained = subject.copy_of_model().train()
    except CandidateFault:
        return None
    try:
        return trees.same_bits(eval_output, subject.forward(subject.fresh_inputs(), trained))
    except CandidateFault:
        return False


def _reads_unwritten_memory(subject: Subject) -> bool:
    """True where NaN that torch puts into every new `torch.empty` reaches the (otherwise finite) output."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        output = trees.tensors(subject.forward(subject.inputs))
    except CandidateFault:
        return False
    finally:
        torch.use_deterministic_algorithms(False)
    kept = zip(output, trees.tensors(subject.output), strict=False)
    return any(_non_finite(new) > _non_finite(old) for new, old in kept)


def _non_finite(tensor: torch.Tensor) -> int:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.element_size() == 1:  # float8
        return 0
    return int((~torch.isfinite(tensor)).sum())


def _poison(like: Any) -> None:
    """Fill memory that the next forward will be handed with NaN, so that unwritten outputs show."""
    for tensor in trees.tensors(like):
        if tensor.is_floating_point() and tensor.numel() * tensor.element_size() <= _POISON_BYTES_MAX:
            torch.full_like(tensor, torch.nan)
