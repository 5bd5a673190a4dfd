"""Stage repeatability: is the task a pure function of its inputs and weights, bit for bit?"""

import copy
from typing import Any

import torch

from filters.worker import trees
from filters.worker.randomness import advanced, seed_all, states
from filters.worker.scatter import ScatterTargets
from filters.worker.subject import CandidateFault, Subject

_REPEATS = 5
"""One repeat misses low-entropy cases; torchfuzz repeats six times."""
_POISON_BYTES_MAX = 1 << 30
_SIMPLE = (int, float, complex, bool, str, bytes, type(None))
_CONTAINERS = (dict, list, tuple, set, frozenset)


def repeatability(subject: Subject) -> dict[str, Any]:
    """Facts of the stage `repeatability`. Leaves `subject.output` as the output for draw 0."""
    seed_all(7)
    before = states(subject.device)
    first = subject.forward(subject.fresh_inputs())
    consumed = advanced(before, states(subject.device))
    state = _state(subject)

    seed_all(8)
    other_seed = subject.forward(subject.fresh_inputs())
    repeats_equal = True
    for _ in range(_REPEATS - 2):
        _poison(first, subject.device)
        repeats_equal = repeats_equal and trees.same_bits(first, subject.forward(subject.fresh_inputs()))
    with ScatterTargets() as scatter:
        subject.forward(subject.fresh_inputs())
    facts = {
        "rng_consumed": list(consumed),
        "seed_changes_output": not trees.same_bits(first, other_seed),
        "repeats_equal": repeats_equal and trees.same_bits(subject.output, first),
        "state_changed": _state(subject) != state,
        "repeated_scatter_targets": scatter.repeated or "",
        "output_digest": trees.digest(subject.output),
        "train_eval_same": _train_mode_agrees(subject, first),
    }
    subject.output = first
    return facts


def output_digest(subject: Subject) -> dict[str, Any]:
    """Build and run once, for the comparison with another process."""
    subject.load()
    subject.build()
    subject.inputs = subject.draw(0)
    return {"output_digest": trees.digest(subject.forward(subject.fresh_inputs()))}


def _state(subject: Subject) -> str:
    """Digest what a forward could carry over to the next: tensors, plain attributes, globals."""
    seen: list[Any] = []
    for module in subject.model.modules():
        seen.append(_plain(vars(module)))
        seen.append(_plain({k: v for k, v in vars(type(module)).items() if not k.startswith("__")}))
    seen.append(_plain({k: v for k, v in vars(subject.task).items() if not k.startswith("__")}))
    return trees.digest(seen)


def _plain(value: Any, depth: int = 4) -> Any:
    """Keep what can hold state and be compared: tensors, plain values and containers of them."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, _SIMPLE):
        return {f"{value!r}": None}
    if depth == 0:
        return None
    if isinstance(value, dict):
        return {str(key): _plain(item, depth - 1) for key, item in value.items() if _holds_state(item)}
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value if _holds_state(item)]
    if isinstance(value, set | frozenset):
        return {"set": {repr(item): None for item in sorted(value, key=repr)}}
    return None


def _holds_state(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, *_CONTAINERS, *_SIMPLE))


def _train_mode_agrees(subject: Subject, eval_output: Any) -> bool | None:
    """Compare one forward in train mode, on a copy; None where the model cannot be copied."""
    try:
        trained = copy.deepcopy(subject.model).train()
    except (RuntimeError, TypeError, AttributeError, copy.Error):
        return None
    try:
        return trees.same_bits(eval_output, subject.forward(subject.fresh_inputs(), trained))
    except CandidateFault:
        return False


def _poison(like: Any, device: torch.device) -> None:
    """Fill memory that the next forward will be handed with NaN, so that unwritten outputs show."""
    for tensor in trees.tensors(like):
        if tensor.is_floating_point() and tensor.numel() * tensor.element_size() <= _POISON_BYTES_MAX:
            torch.full_like(tensor, torch.nan)
