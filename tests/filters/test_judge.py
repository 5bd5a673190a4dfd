import dataclasses
import itertools

import pytest

from composer.candidate import Candidate
from filters.judge import claim_of, judge, judge_set
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Verdict

BODY = """
class Model(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) * 2
"""


@pytest.fixture
def candidate(task):
    def make(index=0, body=BODY, **fields):
        return Candidate(index=index, name=f"row {index}", code=task(body), **fields)

    return make


def test_accepted(candidate, good):
    made = candidate(index=3)
    verdict = judge(made, good(), Policy())
    assert verdict == Verdict(index=3, id=made.id, outcome="accepted", reason=Reason.ACCEPTED)
    assert verdict.stage is None


def test_the_text_is_judged_before_the_facts(candidate, good):
    verdict = judge(candidate(body="import os\n" + BODY), good(side_effects=("x",)), Policy())
    assert verdict.reason is Reason.FORBIDDEN
    assert verdict.stage is Stage.SOURCE


def test_source_filters_can_be_skipped(candidate, good):
    verdict = judge(candidate(body="import os\n" + BODY), good(), Policy(), skip_source_filters=True)
    assert verdict.outcome == "accepted"


def test_without_measurement_everything_is_missing(candidate):
    verdict = judge(candidate(), None, Policy())
    assert verdict.outcome == "infrastructure"
    assert verdict.reason is Reason.NEEDS_MEASUREMENT


@pytest.mark.parametrize("fault", ["timeout", "crashed", "out_of_memory", "init_failed", "compile_failed"])
def test_a_fault_is_the_reason_if_no_filter_objects(candidate, fault):
    facts = Measurement(fault=fault, fault_stage="build", fault_detail="what happened")
    verdict = judge(candidate(), facts, Policy())
    assert verdict.outcome == "rejected"
    assert verdict.reason is Reason(fault)
    assert verdict.stage is Stage.BUILD
    assert verdict.evidence == {"detail": "what happened"}


def test_what_was_found_before_the_fault_is_the_reason(candidate, good):
    facts = good(side_effects=("started a thread",), fault="timeout", fault_stage="compile")
    verdict = judge(candidate(), facts, Policy())
    assert verdict.reason is Reason.SIDE_EFFECT


def test_a_fault_at_a_later_stage(candidate, good):
    facts = good(graphs=None, compared_with=None, fault="timeout", fault_stage="compile")
    verdict = judge(candidate(), facts, Policy())
    assert verdict.reason is Reason.TIMEOUT
    assert verdict.stage is Stage.COMPILE


def test_a_lost_worker_is_no_rejection_whatever_it_had_found(candidate, good):
    facts = good(side_effects=("started a thread",), fault="worker_lost", fault_detail="signal SIGKILL")
    verdict = judge(candidate(), facts, Policy())
    assert verdict.outcome == "infrastructure"
    assert verdict.reason is Reason.WORKER_LOST
    assert verdict.evidence == {"detail": "signal SIGKILL"}


@pytest.mark.parametrize("fault", ["accepted", "needs_measurement", "all is well"])
def test_a_fault_in_words_that_are_not_ours_counts_as_a_crash(candidate, fault):
    verdict = judge(candidate(), Measurement(fault=fault, fault_stage="nowhere"), Policy())
    assert verdict.reason is Reason.CRASHED
    assert verdict.stage is Stage.BUILD


def test_missing_facts_are_named(candidate, good):
    verdict = judge(candidate(), good(eager_ms=None, graphs=None), Policy())
    assert verdict.outcome == "infrastructure"
    assert verdict.reason is Reason.NEEDS_MEASUREMENT
    assert verdict.evidence == {"missing": ["eager_ms", "graphs"]}


def test_a_tighter_policy_needs_no_new_measurement(candidate, good):
    assert judge(candidate(), good(eager_ms=1.1), Policy()).outcome == "accepted"
    verdict = judge(candidate(), good(eager_ms=1.1), Policy(eager_ms_min=1.15))
    assert verdict.reason is Reason.TOO_FAST


def test_a_looser_policy_asks_for_what_was_not_measured(candidate, good):
    cut = good(eager_ms=0.5, graphs=None, structure_fault=None, compared_with=None)
    assert judge(candidate(), cut, Policy()).reason is Reason.TOO_FAST
    verdict = judge(candidate(), cut, Policy(eager_ms_min=0.4))
    assert verdict.reason is Reason.NEEDS_MEASUREMENT
    assert verdict.evidence == {"missing": ["graphs", "structure_fault", "compared_with"]}


def test_requested_operators_are_held_against_what_ran(candidate, good):
    verdict = judge(candidate(requested_ops=("torch.tanh",)), good(), Policy())
    assert verdict.reason is Reason.LABEL_MISMATCH


def test_rows_from_transformers_claim_a_whole_layer(candidate):
    claim = claim_of(candidate(data_source="transformers", requested_ops=("LlamaMLP",)))
    assert claim.whole_layer
    assert claim.requested_ops == ()


def other_body(number: int) -> str:
    """Return a body that is no repeat of those with another number."""
    return BODY.replace("sigmoid", ("sigmoid", "tanh", "erf", "exp", "sin")[number])


def accepted(candidate: Candidate) -> Verdict:
    return Verdict(index=candidate.index, id=candidate.id, outcome="accepted", reason=Reason.ACCEPTED)


def rejected(candidate: Candidate) -> Verdict:
    return dataclasses.replace(
        accepted(candidate), outcome="rejected", reason=Reason.TOO_FAST, stage=Stage.RUNTIME
    )


def test_of_equal_texts_the_lowest_index_stays_in_any_order(candidate):
    first, same, other = candidate(0), candidate(1), candidate(2, other_body(1))
    verdicts = {c.index: accepted(c) for c in (first, same, other)}
    for order in itertools.permutations((first, same, other)):
        judged = judge_set(order, verdicts, {})
        assert [v.reason for v in judged] == [Reason.ACCEPTED, Reason.DUPLICATE, Reason.ACCEPTED]
        assert judged[1].evidence["of"] == 0
        assert judged[1].stage is Stage.SET


def test_a_repeat_of_a_rejected_row_is_no_duplicate(candidate):
    first, same = candidate(0), candidate(1)
    judged = judge_set([first, same], {0: rejected(first), 1: accepted(same)}, {})
    assert [v.outcome for v in judged] == ["rejected", "accepted"]


def test_surplus_counts_by_index_and_leaves_duplicates_out(candidate):
    rows = [candidate(n, other_body(n // 2)) for n in range(6)]
    judged = judge_set(rows[::-1], {c.index: accepted(c) for c in rows}, {}, wanted=2)
    assert [v.outcome for v in judged] == [
        "accepted", "rejected", "accepted", "rejected", "surplus", "rejected",
    ]  # fmt: skip
    assert judged[4].reason is Reason.ACCEPTED


def test_every_candidate_gets_exactly_one_verdict(candidate):
    rows = [candidate(n, other_body(n // 2)) for n in range(9)]
    verdicts = {c.index: rejected(c) if c.index % 3 == 0 else accepted(c) for c in rows}
    judged = judge_set(rows, verdicts, {}, wanted=3)
    assert [v.index for v in judged] == list(range(9))
    assert [v.id for v in judged] == [c.id for c in rows]
