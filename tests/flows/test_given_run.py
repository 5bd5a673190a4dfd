"""A run over tasks that exist: other sizes where a limit is missed, the rest as in an audit."""

import json

import pytest

from composer.candidate import Candidate
from data.files import read_candidates, read_verdicts
from filters.measurement import Measurement
from filters.reasons import Reason, Stage
from filters.verdict import Verdict
from flows.given_run import counted, next_tasks
from flows.resizing import scaled_by_text
from flows.settings import RunSettings, Settings

TASK = """
import torch
import torch.nn as nn

BATCH_SIZE = {batch}


class Model(nn.Module):
    def forward(self, x):
        return {result}


def get_inputs():
    return [torch.randn({size}, 1024)]


def get_init_inputs():
    return []
"""
TOO_SMALL = TASK.format(batch=8, size="BATCH_SIZE", result="torch.sin(x)")
FIXED = TASK.format(batch=8, size="64", result="torch.cos(x)")
RIGHT = TASK.format(batch=4096, size="BATCH_SIZE", result="torch.asinh(x)")
MISLABELLED = TASK.format(batch=4096, size="BATCH_SIZE", result="torch.erf(x)")
ANY_SLOWNESS = {"OPWEAVER_POLICY__EAGER_MS_MAX": "10000"}
"""The machine may be busy."""


@pytest.fixture
def task_set(tmp_path):
    """A file with three tasks."""
    rows = [
        {"name": "small", "code": TOO_SMALL},
        {"name": "right", "code": RIGHT, "ops": '["torch.asinh"]'},
        {"name": "mislabelled", "code": MISLABELLED, "ops": '["torch.relu"]'},
    ]
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_tasks_are_sized_for_this_device_and_judged(opweaver_run, task_set, tmp_path):
    opweaver_run.environment.update(ANY_SLOWNESS)
    done = opweaver_run("run", "--run-dir", "run", "--from", task_set)
    assert done.returncode == 0, done.stderr
    verdicts = {row.name: row.verdict.reason for row in read_verdicts(tmp_path / "run/verdicts.parquet")}
    assert verdicts == {
        "small": "accepted",
        "right": "accepted",
        "mislabelled": "label_mismatch",
    }
    small, right, _ = read_candidates(tmp_path / "run/candidates.parquet")
    assert (small.size_edits, right.size_edits) in ((1, 0), (2, 0))
    assert small.code != TOO_SMALL
    assert small.code.replace(small.code.split("BATCH_SIZE = ")[1].split("\n")[0], "8") == TOO_SMALL
    assert small.earlier_ids[0] == Candidate(index=0, name="", code=TOO_SMALL).id

    again = opweaver_run("run", "--run-dir", "run", "--from", task_set)
    assert again.returncode == 0, again.stderr
    assert "measuring" not in again.stderr
    task_set.write_text(json.dumps({"name": "other", "code": FIXED}) + "\n")
    other = opweaver_run("run", "--run-dir", "run", "--from", task_set)
    assert other.returncode == 2
    assert "tasks" in other.stderr


def test_a_text_whose_sizes_cannot_change_stays_as_it_is():
    verdict = Verdict(index=0, id="", outcome="rejected", reason=Reason.TOO_FAST, stage=Stage.RUNTIME)
    small, fixed = (Candidate(index=0, name="", code=code) for code in (TOO_SMALL, FIXED))
    measured = Measurement(eager_ms=0.01)
    assert scaled_by_text(small, verdict, measured).code != TOO_SMALL
    assert scaled_by_text(fixed, verdict, measured) is None


def test_a_model_does_not_compose_as_well(opweaver, task_set):
    done = opweaver("run", "--from", task_set, "--composer", "llm", "--llm", "local")
    assert done.returncode == 2
    assert "leave out --composer llm" in done.stderr


def test_all_tasks_are_wanted_unless_a_count_is_given(task_set):
    given = Settings(run=RunSettings(dataset=str(task_set)))
    assert counted(given).run.count == 3
    assert counted(Settings(run=RunSettings(dataset=str(task_set), count=2))).run.count == 2
    assert counted(Settings()).run.count == 24


def test_a_part_of_a_large_set_is_enough_for_few_rows():
    given = [Candidate(index=k, name=str(k), code=str(k)) for k in range(1000)]
    assert len(next_tasks(given, wanted=1000, accepted=0, judged=0)) == 1000
    first = next_tasks(given, wanted=100, accepted=0, judged=0)
    second = next_tasks(given, wanted=100, accepted=60, judged=256)
    assert [each.index for each in first + second] == list(range(512))
    assert next_tasks(given, wanted=100, accepted=100, judged=512) == []
    assert next_tasks(given, wanted=100, accepted=99, judged=1000) == []
