"""What is said of an operator of one's own: its text, its usage, what runs inside."""

import importlib
import sys

import pytest
import torch

from ops_crawler.own import live, own_operator
from ops_crawler.own_code import NoPlainSource, clash, parts, plain_source
from ops_crawler.own_usage import OwnArgument, UsageFault, own_argument


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Return a function that imports some text as a module of its own."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    def load(text: str):
        name = f"own_{abs(hash(text))}_{tmp_path.name.replace('-', '_')}"
        (tmp_path / f"{name}.py").write_text(text)
        return importlib.import_module(name)

    return load


TEXT = '''
"""A module."""
from __future__ import annotations

import math
import os

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_SCALE = math.sqrt(2.0)
_UNUSED = os.sep


def unused(x):
    return os.getpid()


def _halved(x: Tensor) -> Tensor:
    return x / _SCALE


class Gate(nn.Module):
    """Gates."""

    @torch.no_grad()
    def half(self, x):
        return x

    def forward(self, x):
        return F.silu(_halved(x)) ** 2
'''


def test_a_plain_source_takes_along_what_is_needed_and_nothing_else(module):
    code = plain_source(module(TEXT).Gate)
    assert code.splitlines()[:6] == [
        "from __future__ import annotations",
        "from torch import Tensor",
        "import math",
        "import torch",
        "import torch.nn as nn",
        "import torch.nn.functional as F",
    ]
    imports, definitions = parts(code)
    assert list(definitions) == ["_SCALE", "_halved", "Gate"]
    assert len(imports) == 6
    assert "@torch.no_grad()" in definitions["Gate"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import numpy as np\ndef f(x):\n    return np.abs(x)", "needs np from numpy, which a task cannot"),
        ("SIZE = 3\ndef f(x):\n    return x + SIZE", "defines SIZE, which may be the name of a size"),
        ("class Model:\n    pass\ndef f(x):\n    return Model()", "defines Model, which every task has"),
        ("import math as F\ndef f(x):\n    return F.sqrt(x)", "calls math F, which means something else"),
        ("if True:\n    def g(x): return x\ndef f(x):\n    return g(x)", "g is bound by a statement that is"),
    ],
)  # fmt: skip
def test_a_text_that_cannot_stand_alone_says_why(module, text, said):
    with pytest.raises(NoPlainSource, match=said):
        plain_source(module(text).f)


def test_texts_clash_where_they_mean_different_things_by_one_name():
    one = "def helper(x):\n    return x\n"
    assert clash(one, one) is None
    assert clash(one, "def helper(x):\n    return -x\n") == "helper"


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("F", OwnArgument(None, "F", None)),
        ("features=F", OwnArgument("features", "F", None)),
        ("1e-6", OwnArgument(None, None, 1e-6)),
        ("mode='a=b'", OwnArgument("mode", None, "a=b")),
        ("'a=b'", OwnArgument(None, None, "a=b")),
        ("(2, 2)", OwnArgument(None, None, (2, 2))),
    ],
)
def test_arguments_are_axes_or_literals(text, meant):
    assert own_argument(text) == meant


@pytest.mark.parametrize("text", ["Q", "eps=tiny", "", "os.getcwd()"])
def test_other_arguments_are_refused(text):
    with pytest.raises(UsageFault, match="neither an axis"):
        own_argument(text)


def test_a_usage_tells_what_ran_inside(module):
    operator = own_operator(module(TEXT).Gate, layouts=("NLF",))
    assert operator.set_aside is None
    assert operator.usage.runs == ("torch.nn.functional.silu", "torch.pow")
    assert live(operator.usage) is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"layouts": ("NLX",)}, "axis 'X' is none of"),
        ({"layouts": ("NLF",), "arguments": ("W",)}, "axis W is not in the layout NLF"),
        ({"layouts": ("NLF",), "arguments": ("3", "4")}, "NLF: TypeError"),
        ({"layouts": ("NLF",), "inputs": ("NLF",)}, "a module takes one tensor"),
    ],
)
def test_a_usage_that_does_not_work_is_told(module, options, said):
    operator = own_operator(module(TEXT).Gate, **options)
    assert operator.set_aside == "fails"
    assert operator.detail.startswith(said)


def test_trying_leaves_torchs_generator_alone(module):
    before = torch.get_rng_state()
    own_operator(module(TEXT).Gate)
    assert torch.equal(before, torch.get_rng_state())
