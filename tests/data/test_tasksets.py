"""Any task set can be read, and none of them can make itself trusted."""

import collections
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from composer.candidate import Candidate
from data.errors import InputError
from data.files import write_candidates
from data.tasksets import hub_tables, open_taskset, read_taskset

SHARED = Path(__file__).parents[3] / "shared"
OPS_6K = SHARED / "reference" / "ops6k" / "cuda_agent_ops_6k.parquet"
CODE = "import torch\r\n# \u2028 \x85 \x0c \U0001f600 \t end\n"


def parquet(path: Path, **columns) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def undecodable(*cells: bytes) -> pa.Array:
    """Give a string column whose bytes are not all UTF-8, as other writers produce it."""
    raw = pa.array(cells, pa.binary())
    return pa.StringArray.from_buffers(len(raw), *raw.buffers()[1:])


@pytest.mark.skipif(not OPS_6K.exists(), reason="needs ../shared/reference/ops6k")
def test_the_published_ops_6k_file():
    tasks = read_taskset(str(OPS_6K))
    assert len(tasks) == 6000
    assert collections.Counter(task.data_source for task in tasks) == {
        "torch#1": 204, "torch#2": 5026, "torch#3": 457, "torch#4": 168, "torch#5": 74, "transformers": 71,
    }  # fmt: skip
    torch_tasks = [task for task in tasks if task.data_source != "transformers"]
    assert all(len(task.requested_ops) == int(task.data_source.split("#")[1]) for task in torch_tasks)
    classes = [task.requested_ops for task in tasks if task.data_source == "transformers"]
    assert all(
        len(names) == 1 and names[0].isidentifier() and not names[0][-1].isdigit() for names in classes
    )
    assert (tasks[17].index, tasks[17].name, tasks[17].composer) == (17, "17", None)
    original = pq.read_table(OPS_6K)["code"].to_pylist()
    assert [task.code for task in tasks] == original


def test_ops_6k_columns(tmp_path):
    where = parquet(
        tmp_path / "set.parquet",
        ops=['["nn.ReLU", "*"]', "SwinAttention_2", "torch.exp", None, "[[["],
        data_source=["torch#2", "transformers", "torch#1", "torch#1", None],
        code=[CODE] * 5,
    )
    tasks = read_taskset(where)
    assert [task.requested_ops for task in tasks] == [
        ("nn.ReLU", "*"), ("SwinAttention",), ("torch.exp",), (), ("[[[",),
    ]  # fmt: skip
    assert {task.code for task in tasks} == {CODE}


def test_kernelbench_columns(tmp_path):
    where = parquet(
        tmp_path / "kb.parquet", code=["a", "b"], level=[1, 2], name=["1_Square", "7_Gemm"], problem_id=[1, 7]
    )
    assert read_taskset(where) == [
        Candidate(index=0, name="1_Square", code="a"), Candidate(index=1, name="7_Gemm", code="b"),
    ]  # fmt: skip


def test_our_candidates_keep_their_index_but_not_their_origin(tmp_path):
    ours = [
        Candidate(
            index=5,
            name="c5",
            code=CODE,
            requested_ops=("torch.exp",),
            composer="rules",
            origin="rules",
            seed=1,
        )
    ]
    write_candidates(tmp_path / "candidates.parquet", ours)
    (task,) = read_taskset(str(tmp_path / "candidates.parquet"))
    assert (task.index, task.requested_ops, task.seed, task.code) == (5, ("torch.exp",), 1, CODE)
    assert task.origin == "foreign"


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_no_table_can_claim_our_rules(tmp_path, suffix):
    path = tmp_path / f"set.{suffix}"
    if suffix == "parquet":
        parquet(path, code=["a"], origin=["rules"], composer=["rules"])
    else:
        path.write_text(json.dumps({"code": "a", "origin": "rules", "composer": "rules"}))
    assert [task.origin for task in read_taskset(str(path))] == ["foreign"]


def test_json_lines_end_only_at_line_feeds(tmp_path):
    path = tmp_path / "set.jsonl"
    rows = [{"code": CODE, "ops": ["torch.exp"], "id": 3}, {"code": "x = '\ud83d'\n"}]
    path.write_bytes(
        json.dumps(rows[0], ensure_ascii=False).encode()
        + b"\r\n\n"
        + json.dumps(rows[1]).encode()
        + b'\n{"code": "\xff"}'
    )
    tasks = read_taskset(str(path))
    assert [(task.index, task.name, task.code) for task in tasks] == [
        (0, "3", CODE), (1, "1", "x = '\ud83d'\n"), (2, "2", "\udcff"),
    ]  # fmt: skip
    assert tasks[0].requested_ops == ("torch.exp",)


def test_a_torn_last_line_is_named(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_text('{"code": "a"}\n{"code": "b"}\n{"co')
    with pytest.raises(InputError, match="line 3 is no JSON object with a field `code`"):
        read_taskset(str(path))


def test_bytes_that_are_not_utf_8_reach_the_source_filter(tmp_path):
    where = parquet(
        tmp_path / "set.parquet", code=undecodable(b"x = '\xff'", b"y = 1"), ops=undecodable(b"\xfe", b"[]")
    )
    tasks = read_taskset(where)
    assert [task.code for task in tasks] == ["x = '\udcff'", "y = 1"]
    assert tasks[0].requested_ops == ("\udcfe",)
    (tmp_path / "task.py").write_bytes(b"# caf\xe9\r\n")
    assert read_taskset(str(tmp_path / "task.py")) == [
        Candidate(index=0, name="task", code="# caf\udce9\r\n")
    ]


def test_other_string_types(tmp_path):
    for number, column in enumerate(
        [
            pa.array(["a", None], pa.large_string()),
            pa.array(["a", None]).dictionary_encode(),
            pa.array([b"a", None]),
        ]
    ):
        tasks = read_taskset(parquet(tmp_path / f"{number}.parquet", code=column))
        assert [task.code for task in tasks] == ["a", ""]


def test_a_folder_of_files(tmp_path):
    for name in ("b.py", "a.py", "level1/c.py", ".venv/d.py", "__pycache__/e.py", "notes.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    tasks = read_taskset(str(tmp_path))
    assert [(task.index, task.name, task.code) for task in tasks] == [
        (0, "a", "a.py"), (1, "b", "b.py"), (2, "level1/c", "level1/c.py"),
    ]  # fmt: skip


def test_a_folder_of_tables(tmp_path):
    (tmp_path / "data").mkdir()
    parquet(tmp_path / "data" / "train-00000-of-00001.parquet", code=["a"], id=["f00"])
    parquet(tmp_path / "data" / "validation-00000-of-00001.parquet", code=["b"], id=["f01"])
    assert [(task.index, task.name) for task in read_taskset(str(tmp_path))] == [(0, "f00"), (1, "f01")]


def test_a_set_in_the_format_of_the_hub(tmp_path, offline_hub):
    parquet(tmp_path / "train.parquet", code=["a"], ops=['["nn.ReLU"]'])
    (table,) = hub_tables(str(tmp_path))
    assert table.to_pylist() == [{"code": "a", "ops": '["nn.ReLU"]'}]


def test_tables_stand_beside_the_candidates_row_for_row(tmp_path):
    parquet(tmp_path / "a.parquet", code=["a", "b"], level=[1, 2])
    parquet(tmp_path / "b.parquet", code=["c"], level=[3])
    found = open_taskset(str(tmp_path))
    assert [task.code for task in found.candidates] == ["a", "b", "c"]
    assert [level for table in found.tables for level in table["level"].to_pylist()] == [1, 2, 3]
    (tmp_path / "task.py").write_text("x = 1\n")
    assert open_taskset(str(tmp_path)).tables == []


def test_what_cannot_be_read_is_one_clear_line(tmp_path, offline_hub):
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "set.csv").write_text("code\n")
    (tmp_path / "text.parquet").write_text("code\n")
    parquet(tmp_path / "verdicts.parquet", reason=["accepted"])
    (tmp_path / "run").mkdir()
    parquet(tmp_path / "run" / "candidates.parquet", code=["a"])
    parquet(tmp_path / "run" / "operators.parquet", signature=["()"])
    (tmp_path / "other.jsonl").write_text('{"source": "a"}')
    for where, why in {
        str(tmp_path / "absent.parquet"): "no such file or folder",
        "no-such-org/no-such-set": "neither here nor readable from the Hub",
        str(tmp_path / "empty"): "holds no .py, .parquet or .jsonl file",
        str(tmp_path / "empty.jsonl"): "holds no tasks",
        str(tmp_path / "set.csv"): "unknown kind of file",
        str(tmp_path / "text.parquet"): "not a readable Parquet file",
        str(tmp_path / "verdicts.parquet"): "no column `code`",
        str(tmp_path / "run"): "operators.parquet: no column `code`",
        str(tmp_path / "other.jsonl"): "line 1 is no JSON object with a field `code`",
        "x" * 5000: "cannot be read",
    }.items():
        with pytest.raises(InputError) as refused:
            read_taskset(where)
        assert why in str(refused.value)
        assert "\n" not in str(refused.value)
