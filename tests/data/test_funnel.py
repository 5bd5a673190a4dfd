"""The four ends of a candidate add up to the plan, or the missing ones are named."""

from data.funnel import FunnelLine, adds_up, funnel
from filters.reasons import Reason, Stage
from filters.verdict import Verdict


def verdict(index: int, outcome: str, reason: Reason, stage: Stage | None = None) -> Verdict:
    return Verdict(index=index, id=str(index), outcome=outcome, reason=reason, stage=stage)


VERDICTS = [
    verdict(0, "accepted", Reason.ACCEPTED),
    verdict(1, "rejected", Reason.TOO_FAST, Stage.RUNTIME),
    verdict(2, "rejected", Reason.SYNTAX, Stage.SOURCE),
    verdict(3, "rejected", Reason.TOO_FAST, Stage.RUNTIME),
    verdict(4, "surplus", Reason.ACCEPTED),
    verdict(5, "infrastructure", Reason.NEEDS_MEASUREMENT, Stage.COMPILE),
    verdict(6, "rejected", Reason.TIMEOUT, Stage.COMPILE),
    verdict(7, "rejected", Reason.TIMEOUT, Stage.BUILD),
]


def test_the_funnel_follows_the_order_of_the_judging():
    assert funnel(VERDICTS) == [
        FunnelLine("source", "syntax", 1),
        FunnelLine("build", "timeout", 1),
        FunnelLine("runtime", "too_fast", 2),
        FunnelLine("compile", "timeout", 1),
        FunnelLine("accepted", "accepted", 1),
        FunnelLine("surplus", "accepted", 1),
        FunnelLine("infrastructure", "needs_measurement", 1),
    ]
    assert funnel([]) == []


def test_a_whole_run_adds_up():
    assert adds_up(range(8), VERDICTS) is None
    assert adds_up(range(0), []) is None


def test_what_does_not_add_up_is_named():
    assert adds_up(range(9), VERDICTS) == "9 candidates planned, 8 verdicts: 1 without a verdict (8)"
    wrong = adds_up(range(1, 20), [*VERDICTS, VERDICTS[3]])
    assert "12 without a verdict (8, 9, 10, 11, 12, ...)" in wrong
    assert "1 with more than one verdict (3)" in wrong
    assert "1 with a verdict but not planned (0)" in wrong
