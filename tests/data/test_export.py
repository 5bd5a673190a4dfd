"""Layouts of others: names, columns and types as their loaders want them, the text byte for byte."""

import dataclasses
import hashlib
import json

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import InputError, StorageError
from data.export import export, read_tasks
from data.rows import dataset_row
from tests.data.test_dataset import ENVIRONMENT, MEASURED, row, task, write

LIFTED = dataclasses.replace(task(5), data_source="transformers", requested_ops=("SwinAttention",))
BARE = "class Model: pass\n"


@pytest.fixture
def run(tmp_path):
    """The folder of a run with a split validation."""
    rows = [row(0, "torch.exp"), row(1), row(2, "torch.exp"), dataset_row(LIFTED, MEASURED, ENVIRONMENT)]
    folder = write(tmp_path / "run" / "dataset", rows)
    table = pq.read_table(folder / "data" / "train-00000-of-00001.parquet")
    held_out = [{**each, "split": "validation"} for each in table.slice(0, 1).to_pylist()]
    validation = pa.Table.from_pylist(held_out, schema=table.schema)
    pq.write_table(validation, folder / "data" / "validation-00000-of-00001.parquet")
    return tmp_path / "run"


def exported(where, format, out):
    return export(read_tasks(str(where)), format, out)


def test_kernelbench_has_numbered_files_in_level_folders(run, tmp_path):
    out = exported(run, "kernelbench", tmp_path / "out")
    files = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.py"))
    assert files == [
        "level1/1_exp.py",
        "level1/2_exp.py",
        "level2/1_Linear_exp.py",
        "level3/1_SwinAttention.py",
        "validation/level1/1_exp.py",
    ]
    assert (out / "level2" / "1_Linear_exp.py").read_text() == row(1)["code"]
    assert hashlib.sha256((out / "level1" / "2_exp.py").read_bytes()).hexdigest() == row(2)["id"]


def test_a_file_name_holds_no_odd_sign_and_no_line_end_changes(tmp_path):
    text = "x = 1\r\ny = '\u2028'\n"
    (tmp_path / "set.jsonl").write_text(
        json.dumps({"code": text, "ops": ["a.b/c:d", "../e"]}) + "\n" + json.dumps({"code": BARE}) + "\n"
    )
    out = exported(tmp_path / "set.jsonl", "kernelbench", tmp_path / "out")
    first, second = sorted(out.rglob("*.py"))
    assert (first.name, second.name) == ("1_b_c_d__e.py", "2_task.py")
    assert first.read_bytes() == text.encode()


def test_trl_has_messages_and_what_a_reward_needs(run, tmp_path):
    out = exported(run, "trl", tmp_path / "out")
    assert sorted(path.name for path in out.iterdir()) == ["train.parquet", "validation.parquet"]
    loaded = datasets.load_dataset(
        "parquet", data_files=str(out / "train.parquet"), split="train", cache_dir=tmp_path
    )
    assert loaded.column_names == [
        "prompt", "task_id", "code", "ops", "data_source", "difficulty", "eager_ms", "compile_ms",
        "device_name",
    ]  # fmt: skip
    first = loaded[1]
    (message,) = first["prompt"]
    assert message["role"] == "user"
    assert row(1)["code"].rstrip() in message["content"]
    assert (first["task_id"], first["code"], first["ops"]) == (
        row(1)["id"],
        row(1)["code"],
        ["torch.nn.Linear", "torch.exp"],
    )
    assert (first["eager_ms"], first["compile_ms"], first["device_name"]) == (2.0, None, "Test CPU")


def test_verl_has_its_five_columns(run, tmp_path):
    out = exported(run, "verl", tmp_path / "out")
    rows = pq.read_table(out / "train.parquet").to_pylist()
    assert list(rows[0]) == ["data_source", "prompt", "ability", "reward_model", "extra_info"]
    second = rows[1]
    assert (second["data_source"], second["ability"]) == ("opweaver", "code")
    assert second["prompt"][0]["role"] == "user"
    assert second["reward_model"] == {"style": "rule", "ground_truth": row(1)["code"]}
    assert second["extra_info"] == {
        "index": 1, "split": "train", "task_id": row(1)["id"], "task_source": "torch#2",
        "ops": ["torch.nn.Linear", "torch.exp"], "difficulty": row(1)["difficulty"], "eager_ms": 2.0,
        "compile_ms": None,
        "device_name": "Test CPU",
    }  # fmt: skip
    assert pq.read_table(out / "validation.parquet").to_pylist()[0]["extra_info"]["split"] == "validation"


@pytest.mark.parametrize("format", ["kernelbench", "trl", "verl"])
def test_a_set_of_others_is_exported_without_measurements(tmp_path, format):
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "one.py").write_text(BARE)
    out = exported(tmp_path / "set", format, tmp_path / "out")
    if format == "kernelbench":
        assert (out / "level2" / "1_task.py").read_text() == BARE
        return
    (only,) = pq.read_table(out / "train.parquet").to_pylist()
    assert (only.get("extra_info") or only)["eager_ms"] is None


def test_dataset_folder_file_and_run_give_the_same_tasks(run):
    tasks = read_tasks(str(run))
    assert len(tasks) == 5
    assert read_tasks(str(run / "dataset")) == tasks
    assert read_tasks(str(run / "dataset" / "data" / "train-00000-of-00001.parquet")) == tasks[:4]


def test_bad_input_is_told_in_one_line(run, tmp_path):
    with pytest.raises(InputError, match="nowhere: no such file or folder"):
        read_tasks("nowhere")
    tasks = read_tasks(str(run))
    with pytest.raises(InputError, match="run: is there already and not empty; choose another folder"):
        export(tasks, "trl", run)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: is there already"):
        export(tasks, "trl", tmp_path / "file")
    with pytest.raises(
        InputError, match=r"task 0 of 1 \(id \w{12}\): its text is not UTF-8, which no format"
    ):
        export([dataclasses.replace(tasks[0], code="\ud83d")], "trl", tmp_path / "out")
    with pytest.raises(StorageError, match="a part of this path is a file"):
        export(tasks, "trl", tmp_path / "file" / "out")
    assert not (tmp_path / "out").exists()
    (tmp_path / "early").mkdir()
    (tmp_path / "early" / "settings.toml").write_text("")
    with pytest.raises(InputError, match="early: this run has no dataset yet; finish it with"):
        read_tasks(str(tmp_path / "early"))


def test_a_full_disk_leaves_nothing_half_written(small_disk, run):
    tasks = read_tasks(str(run))
    large = [dataclasses.replace(tasks[0], code="x = 1\n" * 100_000)]
    with pytest.raises(StorageError, match="the disk is full; free some space"):
        export(large, "kernelbench", small_disk / "out")
    assert list(small_disk.iterdir()) == []


def test_a_set_of_another_version_keeps_its_baselines(run, tmp_path):
    """Columns that this version added or dropped are no reason to lose the measured times."""
    (file,) = run.glob("dataset/data/train-*.parquet")
    table = pq.read_table(file)
    older = table.drop_columns(["llm_mode", "prompt_version"]).append_column(
        "since", pa.array([1] * len(table))
    )
    pq.write_table(older, tmp_path / "older.parquet")
    tasks = read_tasks(str(tmp_path / "older.parquet"))
    assert {task.carried["eager_ms"] for task in tasks} == {2.0}
    assert tasks[0].ops == ("torch.exp",)


def test_columns_of_ours_with_other_content_are_told(run, tmp_path):
    (file,) = run.glob("dataset/data/train-*.parquet")
    table = pq.read_table(file)
    for name, values, told in (
        ("eager_ms", ["fast"], "has other types than ours"),
        ("split", ["../elsewhere"], r"row 0 has the split '../elsewhere'; name it train or validation"),
    ):
        place = table.schema.get_field_index(name)
        changed = table.set_column(place, name, pa.array(values * len(table)))
        pq.write_table(changed, tmp_path / "odd.parquet")
        with pytest.raises(InputError, match=told):
            read_tasks(str(tmp_path / "odd.parquet"))
    bare = table.set_column(0, "ops", pa.array([None] * len(table), pa.string()))
    pq.write_table(bare, tmp_path / "bare.parquet")
    assert read_tasks(str(tmp_path / "bare.parquet"))[0].ops == ()


@pytest.mark.parametrize("format", ["kernelbench", "trl", "verl"])
def test_any_name_can_be_exported(tmp_path, format):
    names = ["</script>", "\u2028 \u202e", "\ud83d", "a" * 5000, "", "../../x", "nul\x00"]
    lines = [json.dumps({"code": f"x = {n}\n", "ops": [name]}) for n, name in enumerate(names)]
    (tmp_path / "set.jsonl").write_text("\n".join(lines))
    out = exported(tmp_path / "set.jsonl", format, tmp_path / "out")
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) == (len(names) if format == "kernelbench" else 1)
    if format == "trl":
        assert pq.read_table(files[0])["ops"].to_pylist()[2] == ["\\ud83d"]
