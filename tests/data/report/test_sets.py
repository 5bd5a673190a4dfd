import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.dataset import write_dataset
from data.errors import InputError
from data.files import read_verdicts, write_verdicts
from data.report.sets import holds_verdicts, read_judged_set, read_task_set
from data.rows import dataset_row
from filters.environment import Environment
from filters.policy import Policy

ENVIRONMENT = Environment(
    device_name="AMD EPYC (2 cores)", driver_version=None, cuda_version=None, torch_version="2.13.0+cpu",
    transformers_version=None, tf32_matmul=False, tf32_cudnn=True, compile_backend="inductor", threads=2,
)  # fmt: skip


def test_every_verdict_is_a_row_and_only_accepted_ones_are_members(judged):
    reported = read_judged_set("run", judged.verdicts, judged.candidates)
    assert len(reported.rows) == 8
    assert [row.name for row in reported.members] == ["task_0", "task_1"]
    assert reported.is_judged


def test_code_is_shown_where_the_rejected_config_may_show_it(judged):
    rows = read_judged_set("run", judged.verdicts, judged.candidates).rows
    withheld = {row.name: row.code_withheld for row in rows if row.code is None}
    assert withheld == {
        "task_3": "The source of a forbidden task is not shown.",
        "task_4": "The source of a contaminated task is not shown.",
        "task_7": "Not accepted and without a known licence.",
    }
    assert rows[5].code == judged.candidates[5].code  # too fast: no harm in that


def test_verdicts_without_tasks_have_facts_but_no_code(judged):
    rows = read_judged_set("verdicts", judged.verdicts).rows
    assert {row.code for row in rows} == {None}
    assert rows[0].ops == ("torch.nn.functional.gelu", "torch.sum")


def test_another_set_of_tasks_lends_no_code(judged):
    foreign = [replace(each, code=each.code + "\n") for each in judged.candidates]
    assert {row.code for row in read_judged_set("run", judged.verdicts, foreign).rows} == {None}


def test_a_dataset_of_ours_brings_its_facts_along(judged, tmp_path):
    first = read_verdicts(judged.verdicts)[0]
    row = dataset_row(judged.candidates[0], first.measurement, ENVIRONMENT)
    folder = write_dataset(
        tmp_path / "set", rows=[row], rejected=[], operators=[], funnel=[], policy=Policy(), settings=""
    )
    for place in (folder, folder / "data/train-00000-of-00001.parquet"):
        (read,) = read_task_set(str(place)).rows
        assert read.facts.eager_ms == 24.0
        assert read.facts.input_shapes == ((80, 176, 576),)
        assert read.ops == ("torch.nn.functional.gelu", "torch.sum")
        assert read.machine["device_name"] == "AMD EPYC (2 cores)"
        assert read.composer == "rules"
        assert read.verdict is None


def test_a_foreign_set_only_claims_its_operators(tmp_path):
    rows = [
        {"ops": '["nn.Conv2d", "F.gelu", "sum"]', "data_source": "torch#3", "code": "x = 1", "bytes": "many"}
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "set.parquet")
    reported = read_task_set(str(tmp_path / "set.parquet"))
    assert reported.rows[0].ops == ("torch.nn.Conv2d", "torch.nn.functional.gelu", "sum")
    assert reported.rows[0].facts.bytes is None
    assert not reported.is_judged
    assert reported.members == reported.rows


def test_files_of_verdicts_are_told_from_task_sets(judged, original, tmp_path):
    assert holds_verdicts(judged.verdicts)
    assert not holds_verdicts(original)
    (tmp_path / "set.jsonl").write_text(json.dumps({"code": "x = 1"}))
    assert not holds_verdicts(tmp_path / "set.jsonl")


def test_a_file_without_any_verdict_is_refused(tmp_path):
    write_verdicts(tmp_path / "verdicts.parquet", [], [], {})
    with pytest.raises(InputError, match="holds no verdicts"):
        read_judged_set("run", tmp_path / "verdicts.parquet")
