import gzip
import json

import pytest

from filters.similarity import ReferenceFileError, load, shipped_reference
from filters.similarity.reference import FORMAT, SHIPPED, operators_at_work, save
from filters.similarity.syntax_trees import ast_similarity


def test_the_shipped_file_holds_the_tasks_of_kernelbench():
    reference = shipped_reference()
    levels = [task.name.partition("/")[0] for task in reference.tasks]
    assert [levels.count(f"level{n}") for n in (1, 2, 3, 4)] == [100, 100, 50, 20]
    assert reference.about["licence"] == "MIT"
    assert len(reference.about["commit"]) == 40
    assert SHIPPED.stat().st_size < 1_500_000


def test_the_shipped_file_holds_no_source_text():
    text = gzip.decompress(SHIPPED.read_bytes()).decode()
    for word in ("def ", "import torch", "nn.Module", "batch_size", "return"):
        assert word not in text


def test_signatures_are_known_but_for_the_models_of_the_hub():
    without = [task.name for task in shipped_reference().tasks if not task.signature]
    assert all(name.startswith("level4/") for name in without)
    assert len(without) == 20


def test_a_task_is_its_own_nearest():
    reference = shipped_reference()
    for program in reference.programs[::30]:
        assert ast_similarity(program, program) == 1.0
    relu = reference.tasks[18]
    assert relu.name == "level1/19_ReLU"
    assert reference.same_signature(relu.signature, executed=True) == "level1/19_ReLU"
    assert reference.same_operators(relu.signature, executed=True) == [18]


def test_signatures_match_in_order_and_operators_in_any():
    reference = shipped_reference()
    signature = ("conv2d", "relu", "add")  # level2/1_Conv2D_ReLU_BiasAdd
    assert reference.same_signature(signature, executed=True) == "level2/1_Conv2D_ReLU_BiasAdd"
    assert reference.same_signature(signature[::-1], executed=True) is None
    assert reference.same_operators(("add", "reshape", "relu", "conv2d", "dropout"), executed=True)
    assert reference.same_signature((), executed=True) is None
    assert reference.same_operators((), executed=True) == []


def test_a_norm_of_unknown_rank_equals_one_of_any():
    reference = shipped_reference()
    assert reference.same_signature(("batchnorm2d",), executed=True) == "level1/33_BatchNorm"
    assert reference.same_signature(("batchnorm",), executed=True) == "level1/33_BatchNorm"
    assert reference.same_signature(("batchnorm1d",), executed=True) is None
    assert operators_at_work(("batchnorm2d", "reshape")) == operators_at_work(("batchnorm",))


def test_saved_and_loaded_it_is_the_same(tmp_path):
    reference = shipped_reference()
    save(reference, tmp_path / "again.json.gz")
    again = load(tmp_path / "again.json.gz")
    assert again.tasks == reference.tasks
    assert again.about == reference.about
    assert gzip.decompress((tmp_path / "again.json.gz").read_bytes()) == gzip.decompress(SHIPPED.read_bytes())


def test_a_file_that_is_none_says_how_to_build_one(tmp_path):
    path = tmp_path / "kernelbench.json.gz"
    with pytest.raises(ReferenceFileError, match=r"filters\.similarity\.build"):
        load(path)
    path.write_bytes(b"no gzip")
    with pytest.raises(ReferenceFileError, match="cannot be read"):
        load(path)
    path.write_bytes(gzip.compress(json.dumps({"format": FORMAT + 1}).encode()))
    with pytest.raises(ReferenceFileError, match="format"):
        load(path)
