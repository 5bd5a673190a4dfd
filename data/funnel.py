"""How many candidates ended where, and whether every planned one did."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from filters.reasons import Reason, Stage
from filters.verdict import Verdict

QUESTIONS = {
    Stage.REPLY: "does the model's reply hold one task?",
    Stage.SOURCE: "does it parse, keep to the contract and touch nothing but torch?",
    Stage.SIMILARITY: "is it far from every KernelBench task?",
    Stage.BUILD: "does it build and run within its limits, on inputs that differ?",
    Stage.CONDUCT: "does it leave the process and its inputs alone?",
    Stage.REPEATABILITY: "the same bits again, also in a fresh process?",
    Stage.OUTPUT: "are all outputs plain, finite tensors?",
    Stage.DEGENERATE: "does every trivial answer fail, does every input count?",
    Stage.LABELS: "did the operators run that were asked for?",
    Stage.RUNTIME: "is it long enough to be timed, short enough to be trained on?",
    Stage.COMPILE: "does torch.compile take it?",
    Stage.COMPARE: "does compiled agree with eager, with double precision as arbiter?",
    Stage.SET: "is it no repetition of an earlier row?",
}
"""What each stage asks, in the order of the judging."""

_ENDS = ("accepted", "surplus", "infrastructure")
_STAGES = [stage.value for stage in Stage]
_REASONS = list(Reason)


class FunnelLine(NamedTuple):
    """Candidates that ended at one place for one reason."""

    stage: str
    """A stage for rejected candidates, else `accepted`, `surplus` or `infrastructure`."""
    reason: str
    candidates: int


def funnel(verdicts: Sequence[Verdict]) -> list[FunnelLine]:
    """Count verdicts: rejected ones in the order of the judging, then the three other ends."""
    counts = Counter((_end(verdict), verdict.reason) for verdict in verdicts)
    order = [*_STAGES, *_ENDS]
    ends = sorted(counts, key=lambda end: (order.index(end[0]), _REASONS.index(end[1])))
    return [FunnelLine(stage, reason.value, counts[stage, reason]) for stage, reason in ends]


def _end(verdict: Verdict) -> str:
    return str(verdict.stage) if verdict.outcome == "rejected" else verdict.outcome


def adds_up(planned: Collection[int], verdicts: Sequence[Verdict]) -> str | None:
    """Return what is wrong where not every planned index has exactly one verdict, else None.

    planned = accepted + surplus + rejected + infrastructure, always.
    """
    counts = Counter(verdict.index for verdict in verdicts)
    wrong = {
        "without a verdict": sorted(set(planned) - counts.keys()),
        "with more than one verdict": sorted(index for index, count in counts.items() if count > 1),
        "with a verdict but not planned": sorted(counts.keys() - set(planned)),
    }
    found = [f"{len(indices)} {what} ({_some(indices)})" for what, indices in wrong.items() if indices]
    if not found:
        return None
    return f"{len(planned)} candidates planned, {len(verdicts)} verdicts: {'; '.join(found)}"


def _some(indices: Sequence[int]) -> str:
    shown = ", ".join(map(str, indices[:5]))
    return shown if len(indices) <= 5 else f"{shown}, ..."
