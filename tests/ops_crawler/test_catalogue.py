"""The frozen catalogue: what it holds, that it is true, and how another torch is compared with it."""

import gzip
import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from ops_crawler.catalogue import FILE, Differences, differences, freeze, frozen, with_witnesses
from ops_crawler.crawl import crawl
from ops_crawler.operator import Operator
from ops_crawler.torch_source import torch_callables
from ops_crawler.witnesses.execution import witnessed
from ops_crawler.witnesses.verification import unconfirmed

ROOT = Path(__file__).parents[2]
CALLABLES = {name: target for name, _, target in torch_callables()}
SAME_TORCH = pytest.mark.skipif(
    torch.__version__.partition("+")[0] != frozen().torch_version,
    reason=f"the catalogue was made with torch {frozen().torch_version}",
)
SAMPLE = """torch.nn.Conv2d torch.nn.LSTM torch.nn.MultiheadAttention torch.linalg.cholesky torch.gather
    torch.cat torch.where torch.fft.rfft torch.special.zeta torch.nn.functional.embedding
    torch.bitwise_and""".split()


@pytest.fixture(scope="module")
def operators() -> list[Operator]:
    return crawl()


def test_nearly_every_operator_that_is_kept_has_an_executed_call():
    kept = [entry for entry in frozen().entries.values() if entry.set_aside is None]
    origins = Counter(entry.witness.origin for entry in kept if entry.witness)
    assert origins.total() >= 420
    assert origins["opinfo"] > origins["docstring"] > 0
    assert origins["moduleinfo"] > origins["search"] > 0


def test_what_is_set_aside_has_no_call():
    assert [name for name, entry in frozen().entries.items() if entry.set_aside and entry.witness] == []


def test_a_call_tells_arguments_shapes_dtypes_aten_operators_and_gradients():
    convolution = frozen().entries["torch.nn.Conv2d"].witness
    assert convolution is not None
    call = json.loads(convolution.call)
    channels, out_channels, kernel_size = call["init"]["args"]
    (batch, in_channels, height, width) = call["args"][0]["tensor"]
    assert (channels, convolution.input_shapes) == (in_channels, ((batch, in_channels, height, width),))
    assert convolution.output_shapes == (
        (batch, out_channels, height - kernel_size + 1, width - kernel_size + 1),
    )
    assert convolution.input_dtypes == convolution.output_dtypes == ("float32",)
    assert "convolution" in convolution.aten_ops
    assert convolution.differentiable
    assert not frozen().entries["torch.argmax"].witness.differentiable


@SAME_TORCH
@pytest.mark.parametrize("name", SAMPLE)
def test_a_call_made_again_gives_the_same(name):
    entry = frozen().entries[name]
    assert witnessed(entry.kind, CALLABLES[name], entry.witness.call, entry.witness.origin) == entry.witness


@SAME_TORCH
@pytest.mark.slow
def test_every_call_made_again_gives_the_same(operators):
    assert unconfirmed(operators) == []


def test_a_call_that_gives_something_else_is_named(operators):
    (relu,) = [operator for operator in operators if operator.name == "torch.nn.ReLU"]
    wrong = replace(relu, witness=replace(relu.witness, output_shapes=((1, 1),)))
    assert unconfirmed([relu, wrong]) == ["torch.nn.ReLU"]


@SAME_TORCH
def test_the_torch_that_it_was_made_with_does_not_differ(operators):
    assert differences(operators) == Differences(new=(), gone=(), changed=())


def test_new_gone_and_changed_operators_are_told(operators):
    by_name = {operator.name: operator for operator in operators}
    softer = replace(by_name["torch.nn.ReLU"], name="torch.nn.SofterReLU")
    linear = replace(by_name["torch.nn.Linear"], signature="(in_features, out_features)")
    norm = replace(by_name["torch.nn.LayerNorm"], set_aside="deprecated")
    left = [op for op in operators if op.name not in ("torch.nn.Linear", "torch.nn.LayerNorm", "torch.erf")]
    known = differences(operators)
    found = differences([*left, softer, linear, norm])
    assert set(found.new) - set(known.new) == {"torch.nn.SofterReLU"}
    assert set(found.gone) - set(known.gone) == {"torch.erf"}
    assert set(found.changed) - set(known.changed) == {"torch.nn.LayerNorm", "torch.nn.Linear"}


def test_an_operator_that_is_called_otherwise_now_has_no_call_of_old(operators):
    (linear,) = [operator for operator in operators if operator.name == "torch.nn.Linear"]
    changed = replace(linear, signature="(in_features, out_features)", witness=None)
    assert with_witnesses([changed])[0].witness is None


def test_the_same_operators_freeze_to_the_same_bytes(operators):
    one = freeze(operators, "2.13.0")
    assert one == freeze(list(reversed(operators)), "2.13.0")
    assert json.loads(gzip.decompress(one))["layout"] == 1


@SAME_TORCH
def test_the_file_is_what_its_own_operators_freeze_to(operators):
    assert gzip.decompress(freeze(operators, frozen().torch_version)) == gzip.decompress(FILE.read_bytes())


def test_it_is_read_without_torch():
    code = (
        "import sys; from ops_crawler.catalogue import frozen; frozen();"
        "print('torch' in sys.modules, 'expecttest' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
