"""A dataset folder that loads as it is, whole or not at all, with nothing in it that may not be shown."""

import dataclasses
import json
import random

import datasets
import pyarrow.parquet as pq
import pytest

from composer.candidate import Candidate
from data.dataset import write_dataset
from data.errors import InputError, StorageError
from data.funnel import funnel
from data.publish import check_loads, release_files
from data.rows import dataset_row, rejected_row
from data.schema import DATASET, OPERATOR, REJECTED
from data.tasksets import read_taskset
from filters.environment import Environment
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Verdict
from ops_crawler.operator import Operator

ENVIRONMENT = Environment(
    device_name="Test CPU",
    driver_version=None,
    cuda_version=None,
    torch_version="2.13.0",
    transformers_version=None,
    tf32_matmul=False,
    tf32_cudnn=True,
    compile_backend="inductor",
    threads=2,
)
MEASURED = Measurement(
    ops=("torch.nn.Linear", "torch.exp"),
    input_shapes=((8, 4),),
    output_shapes=((),),
    flops=10,
    bytes=100,
    eager_ms=2.0,
    eager_samples=30,
    compile_samples=20,
    inert_parameters=(),
)
EXP = Operator(name="torch.exp", kind="function", signature="(input)")
SETTINGS = 'seed = 3\ncomposer = "rules"\n'


def task(index: int) -> Candidate:
    code = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x.exp()\n"
        f"def get_inputs():\n    return [torch.rand({index + 8})]\ndef get_init_inputs():\n    return []\n"
    )
    return Candidate(
        index=index,
        name=str(index),
        code=code,
        requested_ops=("torch.exp",),
        composer="rules",
        origin="rules",
        seed=3,
    )


def verdict(
    candidate: Candidate, reason: Reason = Reason.ACCEPTED, stage: Stage | None = None, **evidence
) -> Verdict:
    outcome = "accepted" if reason is Reason.ACCEPTED else "rejected"
    return Verdict(
        index=candidate.index, id=candidate.id, outcome=outcome, reason=reason, stage=stage, evidence=evidence
    )


def row(index: int, *ops: str) -> dict:
    measured = dataclasses.replace(MEASURED, ops=ops) if ops else MEASURED
    return dataset_row(task(index), measured, ENVIRONMENT)


def write(folder, rows, rejected=(), operators=(EXP,), verdicts=()):
    return write_dataset(
        folder,
        rows=rows,
        rejected=rejected,
        operators=operators,
        funnel=funnel(verdicts),
        policy=Policy(),
        settings=SETTINGS,
    )


def load(folder, config: str = "default", split: str = "train") -> datasets.Dataset:
    return datasets.load_dataset(str(folder), config, split=split)


def test_a_row_says_what_ran_where():
    measured = dataclasses.replace(MEASURED, kb_ast_similarity=0.4, kb_nearest="level1/1")
    made = dataset_row(task(0), measured, ENVIRONMENT)
    assert list(made) == [column.name for column in DATASET]
    assert made["ops"] == '["torch.nn.Linear", "torch.exp"]'
    assert (made["data_source"], made["op_count"], made["requested_ops"]) == ("torch#2", 2, ("torch.exp",))
    assert (made["categories"], made["difficulty"]) == (("elementwise", "linear algebra"), "medium")
    assert (made["timing_samples"], made["eager_ms"], made["compile_ms"]) == (20, 2.0, None)
    assert (made["device_name"], made["tf32_cudnn"], made["cuda_version"]) == ("Test CPU", True, None)
    assert (made["kb_ast_similarity"], made["kb_nearest"], made["kb_operator_nearest"]) == (
        0.4,
        "level1/1",
        None,
    )
    assert made["id"] == task(0).id
    assert made["family_id"] == row(1)["family_id"], "only a size differs"


def test_a_transformers_row_keeps_its_class_as_label():
    lifted = dataclasses.replace(task(0), data_source="transformers", requested_ops=("SwinAttention",))
    made = dataset_row(lifted, dataclasses.replace(MEASURED, ops=("torch.exp",) * 9), ENVIRONMENT)
    assert (made["ops"], made["data_source"], made["op_count"]) == ('["SwinAttention"]', "transformers", 9)
    assert made["difficulty"] == "hard"


@pytest.mark.parametrize(
    "reason", [Reason.CONTAMINATED, Reason.FORBIDDEN, Reason.SIDE_EFFECT, Reason.CRASHED]
)
def test_code_that_may_do_harm_is_never_shown(reason):
    shown = rejected_row(task(0), verdict(task(0), reason, Stage.SOURCE, of="L1/19"), None)
    assert list(shown) == [column.name for column in REJECTED]
    assert (shown["code"], json.loads(shown["evidence"])) == (None, {"of": "L1/19"})


def test_code_without_a_licence_is_never_shown():
    ours, foreign = task(0), Candidate(index=1, name="17", code="x = 1\n")
    licensed = dataclasses.replace(foreign, source_license="CC-BY-4.0")
    codes = [
        rejected_row(c, verdict(c, Reason.TOO_FAST, Stage.RUNTIME), MEASURED)["code"]
        for c in (ours, foreign, licensed)
    ]
    assert codes == [ours.code, None, "x = 1\n"]


def test_all_three_configs_load(tmp_path, offline_hub):
    broken = dataclasses.replace(task(2), code="LABEL = '\ud83d'\n")
    rejects = [
        rejected_row(task(1), verdict(task(1), Reason.CONTAMINATED, Stage.SIMILARITY), MEASURED),
        rejected_row(broken, verdict(broken, Reason.SYNTAX, Stage.SOURCE, text="\ud83d"), None),
    ]
    folder = write(tmp_path / "dataset", [row(0), row(3)], rejects)
    tasks, rejected, operators = load(folder), load(folder, "rejected"), load(folder, "operators")
    assert (len(tasks), tasks.column_names) == (2, [column.name for column in DATASET])
    assert [json.loads(text) for text in tasks["ops"]] == [["torch.nn.Linear", "torch.exp"]] * 2
    assert tasks["input_shapes"][0] == [[8, 4]]
    assert rejected["code"][:] == [None, "LABEL = '\\ud83d'\n"], "an escape stands for the lone surrogate"
    assert (operators.column_names, operators["name"][:]) == (
        [column.name for column in OPERATOR],
        ["torch.exp"],
    )
    assert datasets.load_dataset(str(folder))["train"].num_rows == 2
    assert [candidate.code for candidate in read_taskset(str(folder))] == [task(0).code, task(3).code]


def test_nothing_rejected_still_loads(tmp_path, offline_hub):
    folder = write(tmp_path / "dataset", [row(0)], rejected=[], operators=[])
    for config in ("rejected", "operators"):
        (stand_in,) = load(folder, config)
        assert set(stand_in.values()) == {None}
    assert "| `rejected` | train | 0 |" in (folder / "README.md").read_text()


def test_a_column_of_nulls_keeps_its_type(tmp_path, offline_hub):
    rows = [row(index, "torch.exp", f"torch.a{index}") for index in range(1000)]
    folder = write(tmp_path / "dataset", rows)
    train, validation = load(folder), load(folder, split="validation")
    assert (train.num_rows + validation.num_rows, train.features) == (1000, validation.features)
    assert train.features["kb_ast_similarity"].dtype == "float64"
    assert 20 < validation.num_rows < 100
    assert set(validation["split"]) == {"validation"}
    assert not {*train["ops"]} & {*validation["ops"]}


def test_a_second_release_replaces_the_first(tmp_path, offline_hub):
    folder = write(tmp_path / "dataset", [row(index, f"torch.a{index}") for index in range(1000)])
    assert 'size_categories: ["1K<n<10K"]' in (folder / "README.md").read_text()
    assert load(folder).num_rows > 900
    (folder / "data" / "stale.parquet").write_bytes(b"")
    write(folder, [row(index) for index in range(60)])
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*")) == [
        "README.md",
        "data/train-00000-of-00001.parquet",
        "operators/train-00000-of-00001.parquet",
        "rejected/train-00000-of-00001.parquet",
    ]
    assert list(datasets.load_dataset(str(folder))) == ["train"]
    assert load(folder).num_rows == 60
    assert 'size_categories: ["n<1K"]' in (folder / "README.md").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["dataset"]


def test_another_run_is_not_taken_from_the_cache(tmp_path, offline_hub):
    first = write(tmp_path / "a" / "dataset", [row(0)])
    second = write(tmp_path / "b" / "dataset", [row(1)])
    assert [load(folder)["id"][0] for folder in (first, second)] == [task(0).id, task(1).id]


def test_the_same_rows_give_the_same_bytes(tmp_path):
    folders = [write(tmp_path / name, [row(0), row(1)]) for name in ("a", "b")]
    for path in folders[0].rglob("*.*"):
        assert path.read_bytes() == (folders[1] / path.relative_to(folders[0])).read_bytes()


def test_the_card_tells_where_candidates_went(tmp_path):
    verdicts = [verdict(task(0)), verdict(task(1), Reason.TOO_FAST, Stage.RUNTIME)]
    folder = write(tmp_path / "dataset", [row(0)], verdicts=verdicts)
    card = (folder / "README.md").read_text()
    for line in (
        "| runtime | too_fast | 1 |", "| all | | 2 |", "| `peak_memory_mb` | double | MB (10^6 bytes) |",
        "| Test CPU |  |  | 2.13.0 |  | False | True |", 'seed = 3\ncomposer = "rules"',
    ):  # fmt: skip
        assert line in card


def test_a_full_disk_keeps_the_old_dataset(small_disk):
    folder = write(small_disk / "dataset", [row(0)])
    before = (folder / "README.md").read_text()
    large = dataclasses.replace(task(1), code=random.Random(0).randbytes(300_000).hex())
    with pytest.raises(StorageError, match=r"dataset: cannot be written: the disk is full; free some space"):
        write(folder, [], [rejected_row(large, verdict(large, Reason.SYNTAX, Stage.SOURCE), None)])
    assert (folder / "README.md").read_text() == before
    assert [path.name for path in small_disk.iterdir()] == ["dataset"]
    assert pq.read_table(folder / "data" / "train-00000-of-00001.parquet").num_rows == 1


def test_a_folder_of_something_else_is_not_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="holds something else than a dataset of ours"):
        write(tmp_path, [row(0)])
    (tmp_path / "README.md").write_text("My notes")
    with pytest.raises(InputError, match="holds something else"):
        write(tmp_path, [row(0)])
    (tmp_path / "empty").mkdir()
    assert write(tmp_path / "empty", [row(0)]).is_dir()


def test_rows_of_two_devices_are_also_two_configs(tmp_path, offline_hub):
    two = [
        {**row(index, "torch.exp"), "device_name": name} for index, name in enumerate(("Card A", "Card_B"))
    ]
    folder = write(tmp_path / "dataset", [*two, {**row(2, "torch.exp"), "device_name": "Card A"}])
    assert len(load(folder)) == 3
    assert load(folder, "card-a")["device_name"] == ["Card A", "Card A"]
    assert load(folder, "card-b")["id"] == [two[1]["id"]]
    check_loads(folder)
    places = [file.place for file in release_files(folder)]
    assert "devices/card-a/train-00000-of-00001.parquet" in places


def test_rows_of_one_device_need_no_config_of_their_own(tmp_path):
    folder = write(tmp_path / "dataset", [row(0, "torch.exp")])
    assert not (folder / "devices").exists()
