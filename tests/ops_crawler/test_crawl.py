"""What the crawl of the installed torch must know, and how it fails."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from ops_crawler.crawl import NoOperatorsError, crawl, survey
from ops_crawler.inspection import describe
from ops_crawler.operator import Operator, operator_from
from ops_crawler.reasons import REASONS

ROOT = Path(__file__).parents[2]
NAMESPACES = {"torch", "torch.nn", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft"}


@pytest.fixture(scope="module")
def catalogue() -> dict[str, Operator]:
    return {operator.name: operator for operator in crawl()}


def test_names_are_sorted_and_unique():
    names = [operator.name for operator in crawl(("torch", "torch"))]
    assert names == sorted(set(names))
    assert not [name for name in names if name.rpartition(".")[2].startswith("_")], "private names"


def test_enough_operators_of_every_namespace_are_left(catalogue):
    left = Counter(op.name.rpartition(".")[0] for op in catalogue.values() if op.set_aside is None)
    assert left.keys() == NAMESPACES
    assert left.total() >= 450
    assert min(left.values()) >= 20


def test_whatever_is_set_aside_has_a_known_reason(catalogue):
    assert {operator.set_aside for operator in catalogue.values()} - {None} <= REASONS.keys()


def test_modules_tell_required_and_optional_parameters(catalogue):
    linear = catalogue["torch.nn.Linear"]
    assert linear.kind == "module"
    assert [p.name for p in linear.parameters if p.required] == ["in_features", "out_features"]
    assert {p.name: p.default for p in linear.parameters}["bias"] == "True"
    assert linear.summary.startswith("Applies an affine linear transformation")
    assert linear.shape_notes.startswith("- Input: :math:`(*, H_\\text{in})`")
    assert (linear.category, linear.alias_group, linear.source) == (
        "linear algebra",
        "torch.nn.Linear",
        "torch",
    )


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
        "torch.linalg.LinAlgError",
    ],
)
def test_settings_and_helpers_are_no_operators(catalogue, name):
    assert name not in catalogue


@pytest.mark.parametrize(
    ("reason", "names"),
    {
        "random": "torch.bernoulli torch.nn.Dropout torch.nn.RReLU torch.rand torch.nn.FractionalMaxPool2d",
        "creation": "torch.zeros_like torch.eye torch.tril_indices torch.fft.fftfreq torch.empty_strided",
        "view_only": "torch.unsqueeze torch.split torch.nn.Identity torch.nn.Flatten torch.real",
        "copy": "torch.clone torch.permute_copy",
        "in_place": "torch.relu_ torch.nn.functional.elu_ torch.index_put_ torch.zero_",
        "deprecated": "torch.svd torch.norm torch.nn.functional.upsample torch.range",
        "sparse": "torch.sparse_coo_tensor torch.hspmm",
        "quantized": "torch.dequantize torch.q_scale torch.fbgemm_linear_int8_weight",
        "no_tensor": "torch.equal torch.numel torch.result_type",
        "data_dependent": "torch.nonzero torch.unique torch.masked_select",
        "ambiguous": "torch.linalg.svd torch.linalg.eigh",
        "lazy": "torch.nn.LazyLinear",
        "container": "torch.nn.Sequential",
        "abstract": "torch.nn.Module torch.nn.RNNBase",
        "internal": "torch.cudnn_convolution torch.lstm torch.native_layer_norm torch.grid_sampler",
    }.items(),
)
def test_operators_that_no_layer_is_built_from_say_why(catalogue, reason, names):
    assert {name: catalogue[name].set_aside for name in names.split()} == dict.fromkeys(names.split(), reason)


@pytest.mark.parametrize(
    "name",
    """torch.cross torch.stft torch.nn.MSELoss torch.linalg.pinv torch.index_copy torch.masked_fill torch.eq
    torch.cumsum torch.nn.LSTM torch.special.entr torch.fft.rfft""".split(),
)
def test_operators_that_look_like_something_set_aside_are_kept(catalogue, name):
    assert catalogue[name].set_aside is None


def test_an_operator_that_resists_inspection_is_described_all_the_same():
    class Stubborn:
        __doc__ = 3
        __signature__ = "not a signature"

        def __call__(self) -> None: ...

    operator = describe("mine.Stubborn", "function", Stubborn(), source="mine", version="1")
    assert (operator.signature, operator.parameters, operator.summary) == ("unknown", (), "")


def test_operators_survive_being_stored_as_json(catalogue):
    stored = json.dumps([asdict(operator) for operator in catalogue.values()])
    assert [operator_from(fields) for fields in json.loads(stored)] == list(catalogue.values())


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


def test_a_source_that_nobody_provides_is_told_and_stops_no_other():
    found = survey(["torhc", "torch"])
    (problem,) = found.problems
    assert problem.startswith("source torhc: is neither a known source (")
    assert "torch" in problem
    assert len(found.operators) == len(crawl())


def test_nothing_at_all_is_an_error_in_one_line():
    with pytest.raises(NoOperatorsError) as error:
        crawl(["torhc", "nowhere:Source"])
    assert "source torhc: is neither" in str(error.value)
    assert "source nowhere:Source: ModuleNotFoundError: No module named 'nowhere'" in str(error.value)
    assert "\n" not in str(error.value)
