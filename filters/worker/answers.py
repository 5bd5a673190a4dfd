"""Stages output and degenerate: can the output be compared, and does it take work to produce it?

CUDA-Agent's verifier compares with `allclose(atol=1e-2, rtol=1e-2)` over five input draws; an answer
that passes without the work makes the task worthless (KernelBench issue 165: four tasks accept zeros).
"""

import itertools
import math
from typing import Any

import torch
from torch import nn

from filters.worker import trees
from filters.worker.faults import CandidateFault
from filters.worker.subject import DRAWS, Subject

_PARAMETERS_PROBED_MAX = 64
_RMS_EFFECT_MIN = 1e-3
"""A replaced input or parameter has an effect if it moves the output by this share of its rms ..."""
_PEAK_EFFECT_MIN = 1e-2
"""... or moves one element by this share of the rms: masks act on few elements."""
_COMPARABLE = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
    torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128,
}  # fmt: skip
"""Dtypes for which torch has the comparisons that a verifier makes; not float8, uint16 and the like."""

Leaves = list[torch.Tensor]


def output(subject: Subject) -> dict[str, Any]:
    """Facts of the stage `output`, from the output for draw 0."""
    odd = {_oddity(leaf, subject.device) for leaf in trees.leaves(subject.output)} - {""}
    found = trees.tensors(subject.output)
    if not odd and not found:
        odd = {"no tensor"}
    facts: dict[str, Any] = {"unsupported_output": ", ".join(sorted(odd))}
    if odd:
        return facts
    return facts | {
        "output_shapes": [list(t.shape) for t in found],
        "output_dtypes": [trees.dtype_name(t) for t in found],
        "output_elements": min(t.numel() for t in found),
        "non_finite_values": sum(int((~torch.isfinite(t)).sum()) for t in found),
    }


def _oddity(leaf: Any, device: torch.device) -> str:
    """Say why a verifier could not compare this leaf element by element; empty if it can."""
    if leaf is None:
        return ""
    if type(leaf) not in (torch.Tensor, nn.Parameter):
        return type(leaf).__name__
    if leaf.device.type != device.type:
        return f"tensor on {leaf.device.type}"
    if not trees.is_plain(leaf):
        return "nested tensor" if leaf.is_nested else f"{trees.dtype_name(leaf)} tensor, {leaf.layout}"
    return "" if leaf.dtype in _COMPARABLE else f"{trees.dtype_name(leaf)} tensor"


def degenerate(subject: Subject) -> dict[str, Any]:
    """Facts of the stage `degenerate`: draws of inputs, then single inputs and parameters replaced.

    Five draws at most, and none once every answer is refuted.
    """
    trivial = TrivialAnswers(subject.job["policy"]["trivial_atol"])
    first = trees.tensors(subject.forward(subject.inputs))
    trivial.challenge(subject.inputs, first)
    varies = _varies_along_batch(first, subject.inputs, trivial.tolerance)
    other: list[Any] = []
    output_of_other: Leaves = []
    for number in range(1, DRAWS):
        other.clear()  # two draws need not fit beside the first
        other = subject.draw(number)
        output_of_other = trees.tensors(subject.forward(other))
        trivial.challenge(other, output_of_other)
        if varies is False:  # few samples can agree by chance
            varies = _varies_along_batch(output_of_other, other, trivial.tolerance)
        if trivial.all_refuted and varies is not False:
            break
    facts = {
        "passing_answers": trivial.passing(),
        "varies_along_batch": varies,
        "ignored_inputs": _ignored_inputs(subject, other, first, output_of_other),
    }
    return facts | _inert_parameters(subject, first)


class TrivialAnswers:
    """Answers that need no work, dropped leaf by leaf as soon as one draw refutes them."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance
        self._constants: Leaves = []
        self._previous: Leaves | None = None
        self._alive: list[set[str]] = []

    def challenge(self, inputs: list[Any], right: Leaves) -> None:
        """Compare every answer that is left with the right output of one draw."""
        if self._previous is None:
            self._constants = [_constant_like(leaf) for leaf in right]
            self._alive = [{"zeros", "constant", "other_draw", "input"} for _ in right]
        if len(right) != len(self._alive):
            self._alive = [set()]  # no stored answer has the right number of leaves
        for position, (leaf, alive) in enumerate(zip(right, self._alive, strict=False)):
            alive.intersection_update([n for n in alive if self._stands(n, position, leaf, inputs)])
        self._previous = right

    def _stands(self, name: str, position: int, leaf: torch.Tensor, inputs: list[Any]) -> bool:
        if name == "input":
            return any(self._is_input(leaf, t) for t in trees.tensors(inputs))
        if name == "other_draw":
            return self._previous is None or _passes(self._previous[position], leaf, self.tolerance)
        answer = _filled(leaf, 0) if name == "zeros" else self._constants[position]
        return _passes(answer, leaf, self.tolerance)

    def _is_input(self, leaf: torch.Tensor, tensor: torch.Tensor) -> bool:
        """True where the leaf equals an input, or is a view of one."""
        if leaf.numel() and trees.share_memory(leaf, tensor):
            return True
        return leaf.dtype == tensor.dtype and _passes(tensor, leaf, self.tolerance)

    @property
    def all_refuted(self) -> bool:
        """True where no later draw can change what `passing` returns."""
        return not all(self._alive)

    def passing(self) -> list[str]:
        """Return the answers that pass on every draw, over all leaves together.

        Where no single kind passes every leaf but each leaf has one that passes, the union is
        returned: a solver may mix them.
        """
        if self.all_refuted:
            return []
        return sorted(set.intersection(*self._alive) or set.union(*self._alive))


def _constant_like(leaf: torch.Tensor) -> torch.Tensor:
    """Return the best constant for one leaf: the mean, or the most frequent value of integers."""
    if leaf.is_floating_point() or leaf.is_complex():
        return _filled(leaf, leaf.mean(dtype=_wide(leaf)).item())
    return leaf.flatten()[:: max(1, leaf.numel() // 4096)].mode().values.expand_as(leaf)


def _filled(leaf: torch.Tensor, value: complex) -> torch.Tensor:
    """Return a tensor like `leaf` with one value everywhere, which takes no memory."""
    return torch.tensor(value, dtype=leaf.dtype, device=leaf.device).expand_as(leaf)


def _wide(leaf: torch.Tensor) -> torch.dtype:
    return torch.complex128 if leaf.is_complex() else torch.float64


def _passes(answer: torch.Tensor, right: torch.Tensor, tolerance: float) -> bool:
    """Compare as a verifier would: allclose, for integers as well; equality for truth values."""
    if answer.shape != right.shape:
        return False
    if right.dtype is torch.bool:
        return torch.equal(answer, right)
    return all(_close(one, other, tolerance) for one, other in trees.pieces(answer, right))


def _close(answer: torch.Tensor, right: torch.Tensor, tolerance: float) -> bool:
    if not (right.is_floating_point() or right.is_complex()):
        answer, right = answer.double(), right.double()
    return torch.allclose(answer, right, atol=tolerance, rtol=tolerance)


def _varies_along_batch(outputs: Leaves, inputs: list[Any], tolerance: float) -> bool | None:
    """False where each leaf that has the batch dimension repeats its first row; None where none has one."""
    batches = {t.shape[0] for t in trees.tensors(inputs) if t.dim() > 0 and t.shape[0] > 1}
    batched = [leaf for leaf in outputs if leaf.dim() > 0 and leaf.shape[0] in batches]
    if not batched:
        return None
    return any(not _passes(leaf[:1].expand_as(leaf), leaf, tolerance) for leaf in batched)


def _ignored_inputs(subject: Subject, other: list[Any], right: Leaves, output_of_other: Leaves) -> list[int]:
    """Return positions of inputs in which a tensor can be replaced without effect.

    A tensor is replaced by that of another draw, or by a disturbed copy where all draws are equal. Those
    that only work together with another input of the same draw are exempt: replacing them alone proves
    nothing. A single input was replaced already, by the other draw.
    """
    leaves = trees.leaves(subject.inputs)
    single = len(leaves) == 1 and trees.is_plain(leaves[0])
    if single and has_effect(right, output_of_other):
        return []
    pairs = enumerate(zip(subject.inputs, other, strict=False))
    return [
        position
        for position, (item, drawn) in pairs
        if any(
            _replacement_goes_unnoticed(subject, position, old, new, right)
            for old, new in zip(trees.tensors(item), trees.tensors(drawn), strict=False)
        )
    ]


def _replacement_goes_unnoticed(
    subject: Subject, position: int, old: torch.Tensor, new: torch.Tensor, right: Leaves
) -> bool:
    value = disturbed(old) if trees.same_bits(old, new) else new
    if trees.same_bits(value, old):
        return False
    changed = list(subject.inputs)
    changed[position] = trees.map_tensors(changed[position], lambda t: value if t is old else t)
    try:
        return not has_effect(right, trees.tensors(subject.forward(changed)))
    except CandidateFault:
        return False


def disturbed(tensor: torch.Tensor) -> torch.Tensor:
    """Return other values of the same kind: noise added, truth inverted, or the same values reversed."""
    if tensor.dtype is torch.bool:
        return ~tensor
    if tensor.is_floating_point() or tensor.is_complex():
        spread = _spread(tensor)
        if math.isfinite(spread):
            return tensor + spread * torch.randn_like(tensor)
    return tensor.flip(tuple(range(tensor.dim())))


def _spread(tensor: torch.Tensor) -> float:
    """Return the rms, at least 0.1: the size of a disturbance that nobody can overlook."""
    return max(trees.rms(tensor), 0.1)


def _inert_parameters(subject: Subject, right: Leaves) -> dict[str, Any]:
    """Replace one parameter after the other, the largest first, and look whether the output moves."""
    named = sorted(
        ((n, p) for n, p in subject.model.named_parameters() if p.numel()), key=lambda item: -item[1].numel()
    )
    total = sum(p.numel() for _, p in named)
    inert, shares = [], [0.0]
    for name, parameter in itertools.islice(named, _PARAMETERS_PROBED_MAX):
        if not parameter.is_floating_point() and not parameter.is_complex():
            continue
        kept = parameter.data
        parameter.data = kept + _spread(kept) * torch.randn_like(kept)
        try:
            if not has_effect(right, trees.tensors(subject.forward(subject.inputs))):
                inert.append(name)
                shares.append(parameter.numel() / total)
        finally:
            parameter.data = kept
    return {"inert_parameters": inert, "inert_parameter_share": max(shares)}


def has_effect(before: Leaves, after: Leaves) -> bool:
    """True if any leaf moved by more than noise, relative to its own rms."""
    if [t.shape for t in before] != [t.shape for t in after]:
        return True
    return any(_moved(one, other) for one, other in zip(before, after, strict=True))


def _moved(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Compare with the rms of `before`, piece by piece until the movement is proven."""
    if not (before.is_floating_point() or before.is_complex()):
        return not torch.equal(before, after)
    rms = trees.rms(before)
    squares = 0.0
    for one, other in trees.pieces(before, after):
        change = other - one
        squares += trees.norm(change) ** 2
        moved = math.sqrt(squares / max(before.numel(), 1))
        if not math.isfinite(moved) or moved > _RMS_EFFECT_MIN * rms:
            return True
        if change.numel() and float(change.abs().max()) > _PEAK_EFFECT_MIN * rms:
            return True
    return False
