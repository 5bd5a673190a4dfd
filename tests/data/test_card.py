"""A card that the Hub, `datasets` and people can read, made of the rows that lie beside it."""

import dataclasses
import json
import re

import datasets
import pyarrow.parquet as pq
import pytest
from huggingface_hub import DatasetCard, DatasetCardData

from data.dataset import write_dataset
from data.front_matter import front_matter
from data.funnel import funnel
from data.rows import dataset_row, is_licensed, rejected_row, without_licence
from data.schema import DATASET, OPERATOR, REJECTED, arrow_schema
from filters.policy import Policy
from filters.reasons import Reason, Stage
from ops_crawler.operator import Operator, Usage
from tests.data.test_dataset import ENVIRONMENT, EXP, MEASURED, row, task, verdict, write

MEASURED_NEAR = dataclasses.replace(MEASURED, kb_ast_similarity=0.41, kb_nearest="level1/1")


def lifted(index: int, **fields):
    return dataclasses.replace(
        task(index),
        data_source="transformers",
        requested_ops=("SwinAttention",),
        **{"source_license": "Apache-2.0", "source_path": "transformers/models/swin"} | fields,
    )


@pytest.fixture
def card(tmp_path):
    """Write a dataset and give its card."""

    def make(rows, rejected=(), operators=(EXP,), verdicts=(), **options) -> str:
        folder = write_dataset(
            tmp_path / "dataset",
            rows=rows, rejected=rejected, operators=operators, funnel=funnel(verdicts),
            policy=options.pop("policy", Policy()), settings="seed = 3\n", **options,
        )  # fmt: skip
        return (folder / "README.md").read_text()

    return make


def test_the_hub_reads_the_front_matter(card):
    text = card([row(0), row(1)])
    read = DatasetCard(text)
    assert isinstance(read.data, DatasetCardData)
    assert (read.data.license, read.data.size_categories) == ("apache-2.0", ["n<1K"])
    assert read.data.task_categories == ["text-generation"]
    assert {"cuda", "kernelbench", "reinforcement-learning"} <= set(read.data.tags)
    assert [config["config_name"] for config in read.data.configs] == ["default", "rejected", "operators"]
    assert DatasetCard(read.content).data.to_dict() == read.data.to_dict(), (
        "edited on the Hub, it stays the same"
    )
    assert text.count("\n---\n") == 1


def test_features_and_sizes_are_those_of_the_files(card, tmp_path):
    infos = {info["config_name"]: info for info in DatasetCard(card([row(0), row(1)])).data.dataset_info}
    for name, columns in (("default", DATASET), ("rejected", REJECTED), ("operators", OPERATOR)):
        read = datasets.Features._from_yaml_list(infos[name]["features"])
        assert read == datasets.Features.from_arrow_schema(arrow_schema(columns))
    (file,) = (tmp_path / "dataset" / "data").iterdir()
    (split,) = infos["default"]["splits"]
    assert (split["name"], split["num_examples"]) == ("train", 2)
    assert infos["default"]["dataset_size"] == split["num_bytes"] > 0
    assert infos["default"]["download_size"] == file.stat().st_size
    assert infos["rejected"]["splits"][0]["num_examples"] == 1, "the row of nulls counts when it is loaded"


def test_the_example_of_the_card_names_the_repository(card):
    assert 'load_dataset("you/tasks", split="train")' in card([row(0)], name="you/tasks")


def test_funnel_filters_and_thresholds_are_those_of_the_run(card):
    verdicts = [verdict(task(0)), verdict(task(1), Reason.TOO_FAST, Stage.RUNTIME)]
    text = card([row(0)], verdicts=verdicts, policy=Policy(eager_ms_min=1.15))
    for line in ("| runtime | too_fast | 1 |", "| all | | 2 |", "| `eager_ms_min` | 1.15 |"):
        assert line in text
    for stage in Stage:
        assert f"| {stage} | " in text


def test_contamination_is_told_with_its_numbers(card):
    near = dataset_row(task(0), MEASURED_NEAR, ENVIRONMENT)
    text = card([near, row(1)], verdicts=[verdict(task(2), Reason.CONTAMINATED, Stage.SIMILARITY)])
    assert "Rejected as `contaminated`: 1 candidates" in text
    assert "`kb_ast_similarity` is at most 0.410." in text


def test_what_people_filter_by_is_counted(card):
    text = card([row(0), row(1, "torch.exp")])
    assert "| `data_source` | torch#1 (1), torch#2 (1) |" in text
    assert "| `eager_ms` | 2 to 2 ms, median 2 |" in text
    assert "| `compile_ms` | not measured |" in text


def test_limits_and_citation_stand_in_it(card):
    text = card([row(0)])
    assert "## Limits" in text
    assert "eprint        = {2602.24286}" in text
    assert "All rows were written for this set and are under `apache-2.0`." in text


def test_rows_of_others_bring_their_licence(card):
    foreign = dataclasses.replace(task(2), composer=None, source_license="CC-BY-4.0")
    odd = dataclasses.replace(task(3), composer=None, source_license="EUPL-1.2, MIT")
    candidates = [task(0), lifted(1), foreign, odd]
    text = card([dataset_row(each, MEASURED, ENVIRONMENT) for each in candidates])
    assert DatasetCard(text).data.license == ["apache-2.0", "cc-by-4.0", "other", "mit"]
    assert "3 rows hold source text of others" in text
    assert "| Apache-2.0 | transformers | 1 |" in text
    assert "Rows of `transformers` are layers of the library transformers, which is under Apache-2.0" in text


def test_a_row_of_others_without_a_licence_is_found():
    unknown = [
        lifted(1, source_license=None),
        dataclasses.replace(task(2), composer=None),
        dataclasses.replace(task(3), source_path="my_operators.swish"),
        dataclasses.replace(task(4), composer=None, source_license=""),
    ]
    known = [task(0), lifted(5), dataclasses.replace(task(6), composer="some-model", request_hash="f0")]
    rows = [dataset_row(each, MEASURED, ENVIRONMENT) for each in [*known, *unknown]]
    assert without_licence(rows) == [each.id for each in unknown]
    assert [is_licensed(each) for each in [*known, *unknown]] == [True] * 3 + [False] * 4


def test_source_text_of_an_operator_without_a_licence_is_not_published(card, tmp_path):
    usage = Usage(code="def swish(x): ...", name="swish", layouts=("NF",))
    own = [
        Operator(name="mine.swish", kind="function", signature="(x)", usage=usage),
        Operator(
            name="mine.free",
            kind="function",
            signature="(x)",
            usage=dataclasses.replace(usage, license="MIT"),
        ),
    ]
    card([row(0)], operators=own)
    (file,) = (tmp_path / "dataset" / "operators").iterdir()
    assert [each["code"] for each in pq.read_table(file)["usage"].to_pylist()] == [None, "def swish(x): ..."]


def test_every_value_of_the_front_matter_is_json():
    """YAML has surprises, such as `no` for false; JSON has none of them."""
    for line in front_matter([], ["apache-2.0"]).splitlines():
        found = re.fullmatch(r"(?:- |\w+: )(.+)", line)
        assert found is None or json.loads(found[1]) is not None


def test_rejected_rows_of_others_keep_their_text_only_with_a_licence(tmp_path):
    shown = [
        rejected_row(each, verdict(each, Reason.TOO_FAST, Stage.RUNTIME), MEASURED)["code"] is not None
        for each in (lifted(0), lifted(1, source_license=None))
    ]
    assert shown == [True, False]
    write(tmp_path / "dataset", [row(0)])
