"""What a release brings, loaded back from the folder and, as its users do, from the Hub."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from data.errors import InputError, StorageError
from data.hub import push
from data.publish import check_loads, release_files
from data.rows import dataset_row, rejected_row
from filters.reasons import Reason, Stage
from tests.data.local_hub import READER
from tests.data.test_dataset import ENVIRONMENT, MEASURED, row, task, verdict, write

LOAD = """
import datasets, json, sys
config, *splits = sys.argv[1:]
loaded = datasets.load_dataset("you/tasks", config)
print(json.dumps({split: rows[splits[0]][:] for split, rows in loaded.items()}))
"""


@pytest.fixture
def load(hub, tmp_path):
    """Load a column from the local Hub in a process and a cache of its own, as somebody else does."""

    def column(config, name):
        home = tmp_path / f"home-{len(list(tmp_path.iterdir()))}"
        environment = os.environ | {
            "HF_ENDPOINT": hub.url, "HF_TOKEN": READER, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", LOAD, config, name], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return column


def publish(folder):
    return push(release_files(folder), "you/tasks", public=False, tag=None, message="A release")


def test_the_files_of_a_release_are_the_card_and_the_tables(tmp_path):
    folder = write(tmp_path / "dataset", [row(0)])
    (folder / "notes.txt").write_text("private")
    assert [file.place for file in release_files(folder)] == [
        "README.md",
        "data/train-00000-of-00001.parquet",
        "operators/train-00000-of-00001.parquet",
        "rejected/train-00000-of-00001.parquet",
    ]
    assert all(file.size == (folder / file.place).stat().st_size for file in release_files(folder))


def test_a_folder_that_does_not_load_is_not_published(tmp_path, offline_hub):
    folder = write(tmp_path / "dataset", [row(0)])
    check_loads(folder)
    (table,) = (folder / "data").iterdir()
    whole = table.read_bytes()
    table.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"dataset: config default cannot be loaded .*write it again with"):
        check_loads(folder)
    (folder / "README.md").write_text("no card")
    table.write_bytes(whole)
    with pytest.raises(InputError, match="dataset: config rejected cannot be loaded"):
        check_loads(folder)


def test_optional_facts_give_all_files_one_schema(tmp_path, offline_hub, monkeypatch):
    """Cases pb_null_column_in_first_shard and pb_optional_field_in_struct."""
    monkeypatch.setattr("data.labels.SPLIT_FROM_ROWS", 40)
    measured = dataclasses.replace(
        MEASURED, graph_breaks=2, eager_ms_iqr=float("nan"), compile_ms=float("inf")
    )
    rows = [
        dataset_row(
            task(n), dataclasses.replace(measured if n % 2 else MEASURED, ops=(f"torch.a{n}",)), ENVIRONMENT
        )
        for n in range(60)
    ]
    rejects = [
        rejected_row(task(70), verdict(task(70), Reason.TOO_FAST, Stage.RUNTIME, eager_ms=0.2), None),
        rejected_row(
            task(71), verdict(task(71), Reason.TOO_SLOW, Stage.RUNTIME, eager_ms=200, on="cpu"), None
        ),
    ]
    check_loads(write(tmp_path / "dataset", rows, rejects))


def test_a_second_release_with_fewer_rows_and_splits_loads(tmp_path, hub, load, monkeypatch):
    """Cases pb_card_out_of_date and pb_interrupted_release."""
    monkeypatch.setattr("data.labels.SPLIT_FROM_ROWS", 100)
    large = [row(n, f"torch.a{n}") for n in range(100)]
    small = [row(n, f"torch.a{n}") for n in range(60)]
    publish(write(tmp_path / "dataset", large))
    first = load("default", "id")
    assert set(first) == {"train", "validation"}
    assert sorted(first["train"] + first["validation"]) == sorted(each["id"] for each in large)

    folder = write(tmp_path / "dataset", small)
    hub.fail("POST .*/commit/", 502)
    with pytest.raises(StorageError, match=r"the Hub failed \(502"):
        publish(folder)
    assert load("default", "id") == first, "readers see the whole old release"

    publish(folder)
    assert load("default", "id") == {"train": [each["id"] for each in small]}
    assert load("operators", "name") == {"train": ["torch.exp"]}


def test_a_text_that_is_not_unicode_is_repaired_and_all_rows_are_published(tmp_path, hub, load):
    """Case pb_surrogate_in_cell."""
    texts = ("x = 1\n", "LABEL = '\ud83d'\n", "# \U0001f600 a legal emoji\n")
    made = [dataclasses.replace(task(n), code=text) for n, text in enumerate(texts)]
    rejects = [rejected_row(each, verdict(each, Reason.CONTRACT, Stage.SOURCE), None) for each in made]
    publish(write(tmp_path / "dataset", [row(0)], rejects))
    assert load("rejected", "code") == {"train": ["x = 1\n", "LABEL = '\\ud83d'\n", texts[2]]}
    assert load("rejected", "id") == {"train": [each.id for each in made]}
