"""How example calls are found: written down, taken from docstrings, tried, and kept within a time limit."""

import importlib.util
import math
import sys

import pytest
import torch
from torch import nn

from ops_crawler import build_catalogue
from ops_crawler.witnesses import docstrings, opinfo, search
from ops_crawler.witnesses.calls import Arguments, Call, Indescribable, made, written
from ops_crawler.witnesses.execution import first_witness, witness_of


@pytest.mark.parametrize("values", [True, False])
def test_arguments_come_back_as_they_were_written(values):
    tensors = [
        torch.tensor([[0.5, -1.25]]),
        torch.tensor([3, 7]),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]),
        torch.empty(0, 3),
    ]
    plain = {"dim": (0, -1), "dtype": torch.int64, "limit": math.inf, "names": ["a", None]}
    again = made(written(Call(Arguments((tensors, 2), plain)), values=values))
    assert again.forward.kwargs == plain
    for before, after in zip(tensors, again.forward.args[0], strict=True):
        assert (after.shape, after.dtype) == (before.shape, before.dtype)
        assert not values or torch.equal(after, before)


def test_a_range_is_kept_inside_the_domain():
    entries = made(written(Call(Arguments((torch.tensor([0.011, 0.989]).repeat(50),))), values=False))
    (tensor,) = entries.forward.args
    assert 0.011 <= float(tensor.min()) < float(tensor.max()) <= 0.989


@pytest.mark.parametrize(
    "argument", [torch.relu, torch.eye(2).to_sparse(), slice(1), torch.tensor([math.nan])], ids=repr
)
def test_what_json_has_no_form_for_is_refused(argument):
    with pytest.raises(Indescribable):
        written(Call(Arguments((argument,))), values=True)


def test_a_tensor_that_must_be_special_is_written_entry_by_entry():
    definite = 3 * torch.eye(6) - 0.4
    witness = witness_of("function", torch.linalg.cholesky, Call(Arguments((definite,))), "search")
    assert witness is not None
    assert '"values":[2.6,-0.4,-0.4,' in witness.call


def test_a_usual_call_with_gradients_is_preferred():
    calls = [
        Call(Arguments((torch.ones(0, 3),))),
        Call(Arguments((torch.ones(2, 3, dtype=torch.int64),))),
        Call(Arguments((torch.ones(2, 3),))),
    ]
    witness = first_witness("function", torch.square, calls, "search")
    assert witness is not None
    assert (witness.input_shapes, witness.input_dtypes) == (((2, 3),), ("float32",))
    assert witness.differentiable


def test_calls_that_raise_are_deprecated_or_give_no_tensor_are_no_witnesses():
    square = torch.ones(2, 2)
    assert witness_of("function", torch.mm, Call(Arguments((square, torch.ones(3)))), "search") is None
    assert witness_of("function", torch.numel, Call(Arguments((square,))), "search") is None
    torch.set_warn_always(True)
    try:
        cross = Call(Arguments((torch.ones(3, 3), torch.ones(3, 3))))
        assert witness_of("function", torch.cross, cross, "search") is None
    finally:
        torch.set_warn_always(False)


def test_docstring_examples_give_the_calls_that_they_make():
    (call,) = docstrings.calls("torch.nn.Fold", "module", nn.Fold)
    assert call.init is not None
    assert call.init.kwargs == {"output_size": (4, 5), "kernel_size": (2, 2)}
    assert call.forward.args[0].shape == (1, 12, 12)
    assert torch.nn.Fold is nn.Fold
    assert len(list(docstrings.calls("torch.vander", "function", torch.vander))) >= 2


def test_the_search_is_bounded_and_finds_plain_calls():
    assert len(list(search.calls("function", torch.where))) == search.TRIES
    witness = first_witness("function", torch.mm, search.calls("function", torch.mm), "search")
    assert witness is not None
    assert len(witness.input_shapes) == 2
    calls = search.calls("module", nn.TripletMarginLoss)
    assert first_witness("module", nn.TripletMarginLoss, calls, "search") is not None


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("expecttest") is None, reason="the development extra is missing")
def test_torchs_own_samples_are_found_under_canonical_names():
    assert len(next(iter(opinfo.calls("torch.sigmoid", "function"))).forward.args) == 1
    assert next(iter(opinfo.calls("torch.nn.Linear", "module"))).init is not None
    assert list(opinfo.calls("torch.special.expit", "function")) == []


CHILD = """
import os, time

def answer(connection):
    while True:
        name = connection.recv()
        if name == "dies":
            os._exit(1)
        if name == "hangs":
            time.sleep(60)
        connection.send(name)
"""


def test_a_child_that_hangs_or_dies_is_replaced(monkeypatch, capsys, tmp_path):
    (tmp_path / "child_of_a_test.py").write_text(CHILD)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr(build_catalogue, "answer", importlib.import_module("child_of_a_test").answer)
    monkeypatch.setattr(build_catalogue, "SECONDS", 6.0)
    found = dict(build_catalogue.find_witnesses(["dies", "fine", "hangs", "fine too"]))
    assert found == {"dies": None, "fine": "fine", "hangs": None, "fine too": "fine too"}
    assert capsys.readouterr().err.splitlines() == [
        "dies: no answer from the child process",
        "hangs: no answer from the child process",
    ]
