"""Judging by the text alone."""

from pathlib import Path

import pytest

from composer.candidate import Candidate
from data.tasksets import read_taskset
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.static_audit import count_shown, judge_texts

OPS_6K = Path(__file__).parents[3] / "shared/reference/ops6k/cuda_agent_ops_6k.parquet"

TASK = """
import torch
import torch.nn as nn
import torch.nn.functional as F

WIDTH = {width}


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)

    def forward(self, {name}):
        return {result}


def get_inputs():
    return [torch.randn(64, WIDTH)]


def get_init_inputs():
    return [WIDTH]
"""


def task(index, result="torch.cumsum(torch.erf(self.first(x)), 1)", width=128, name="x", ops=()):
    code = TASK.format(result=result, width=width, name=name)
    return Candidate(index=index, name=str(index), code=code, requested_ops=ops)


def judged(*tasks):
    verdicts, _ = judge_texts(tasks, Policy(), lambda: None)
    return verdicts


def test_a_text_without_fault_still_needs_to_be_measured():
    (verdict,) = judged(task(0))
    assert (verdict.outcome, verdict.reason) == ("infrastructure", Reason.NEEDS_MEASUREMENT)
    assert verdict.evidence["text"] == {}


def test_repeats_are_found_however_they_are_spelt():
    original, same = task(0), task(1)
    renamed = task(2, "torch.cumsum(torch.erf(self.first(y)), 1)", width=256, name="y")
    first, *others = judged(original, same, renamed)
    assert first.reason is Reason.NEEDS_MEASUREMENT
    assert [v.reason for v in others] == [Reason.DUPLICATE, Reason.DUPLICATE]
    assert others[0].evidence["text"] == {"exact_repeat_of": 0, "canonical_repeat_of": 0}
    assert others[1].evidence["text"] == {"canonical_repeat_of": 0}


def test_a_label_without_its_operator():
    (verdict,) = judged(task(0, ops=("nn.Linear", "torch.erf", "torch.diag")))
    assert (verdict.reason, verdict.stage) == (Reason.LABEL_MISMATCH, Stage.LABELS)
    assert verdict.evidence["text"]["absent_labels"] == ("torch.diag",)


def test_a_random_forward_and_a_benchmark_task():
    random, known = judged(task(0, "F.dropout(torch.erf(self.first(x)), 0.5)"), task(1, "torch.tanh(x)"))
    assert random.reason is Reason.FORBIDDEN
    assert random.evidence["text"]["random_calls"] == ("torch.nn.functional.dropout",)
    assert known.reason is Reason.CONTAMINATED
    assert known.evidence["text"]["kb_signature_match"] == "level1/22_Tanh"


def test_everything_is_counted_also_behind_another_reason():
    verdicts = judged(task(0, "torch.tanh(x)"), task(1, "torch.tanh(x)", ops=("torch.exp",)))
    assert [v.reason for v in verdicts] == [Reason.CONTAMINATED, Reason.CONTAMINATED]
    assert count_shown(verdicts) == {
        "exact_repeat_of": 1,
        "canonical_repeat_of": 1,
        "near_repeat_of": 0,
        "absent_labels": 1,
        "kb_signature_match": 2,
        "random_calls": 0,
    }


def test_unreadable_text_is_one_verdict_among_others():
    broken = Candidate(index=1, name="1", code="class Model(:")
    verdicts = judged(task(0), broken)
    assert [v.reason for v in verdicts] == [Reason.NEEDS_MEASUREMENT, Reason.SYNTAX]


@pytest.mark.slow
@pytest.mark.skipif(not OPS_6K.exists(), reason="needs ../shared/reference/ops6k")
def test_what_earlier_audits_found_in_ops_6k():
    candidates = read_taskset(str(OPS_6K))
    counts = count_shown(verdicts := judged(*candidates))
    assert counts["exact_repeat_of"] == 352
    assert counts["canonical_repeat_of"] == pytest.approx(729, rel=0.1)
    assert counts["absent_labels"] == pytest.approx(550, rel=0.1)
    # 102 by an earlier audit, which did not see branches that the arguments switch off
    assert 100 <= counts["kb_signature_match"] <= 125
    assert "random_calls" in verdicts[3381].evidence["text"]
