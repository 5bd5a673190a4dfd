"""What the crawl of the installed torch must know, and how it fails."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from ops_crawler.crawl import SOURCES, UnknownSource, crawl
from ops_crawler.inspection import describe
from ops_crawler.operator import Operator

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def catalogue() -> dict[str, Operator]:
    return {operator.name: operator for operator in crawl()}


def test_names_are_sorted_and_unique():
    names = [operator.name for operator in crawl(("torch", "torch"))]
    assert names == sorted(set(names))
    assert not [name for name in names if name.rpartition(".")[2].startswith("_")], "private names"


def test_modules_tell_required_and_optional_parameters(catalogue):
    linear = catalogue["torch.nn.Linear"]
    assert linear.kind == "module"
    assert [p.name for p in linear.parameters if p.required] == ["in_features", "out_features"]
    assert {p.name: p.default for p in linear.parameters}["bias"] == "True"
    assert linear.summary.startswith("Applies an affine linear transformation")


@pytest.mark.parametrize("name", ["torch.empty", "torch.add", "torch.kl_div", "torch.nn.functional.gelu"])
def test_functions_without_signature_are_listed_as_unknown(catalogue, name):
    assert catalogue[name].signature == "unknown"
    assert catalogue[name].parameters == ()


@pytest.mark.parametrize("name", ["torch.einsum", "torch.stft", "torch.nn.functional.max_pool2d"])
def test_wrapped_and_python_functions_are_listed(catalogue, name):
    assert catalogue[name].kind == "function"
    assert catalogue[name].signature.startswith("(")
    assert not [p for p in catalogue[name].parameters if p.name in ("args", "kwargs")]


def test_same_last_name_in_two_namespaces_keeps_both(catalogue):
    assert catalogue["torch.kl_div"].signature != catalogue["torch.nn.functional.kl_div"].signature


@pytest.mark.parametrize(
    "name",
    [
        "torch.set_num_threads",
        "torch.manual_seed",
        "torch.save",
        "torch.compile",
        "torch.nn.Parameter",
        "torch.nn.functional.handle_torch_function",
    ],
)
def test_settings_and_helpers_are_no_operators(catalogue, name):
    assert name not in catalogue


def test_an_operator_that_resists_inspection_is_described_all_the_same():
    class Stubborn:
        __doc__ = 3
        __signature__ = "not a signature"

        def __call__(self) -> None: ...

    operator = describe("mine.Stubborn", "function", Stubborn(), source="mine", version="1")
    assert (operator.signature, operator.parameters, operator.summary) == ("unknown", (), "")


def test_two_processes_crawl_the_same():
    script = (
        "import json; from dataclasses import asdict; from ops_crawler.crawl import crawl;"
        "print(json.dumps([asdict(o) for o in crawl()]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(ROOT)}
    other = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(other.stdout) == json.loads(json.dumps([asdict(operator) for operator in crawl()]))


def test_unknown_source_names_the_known_ones():
    with pytest.raises(UnknownSource) as error:
        crawl(["torhc"])
    assert "'torhc'" in str(error.value)
    assert all(name in str(error.value) for name in SOURCES)
    assert "\n" not in str(error.value)
