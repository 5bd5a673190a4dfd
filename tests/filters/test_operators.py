import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode, resolve_name

from filters.operators import (
    canonical_name,
    computes,
    element_of,
    label_of,
    module_element,
    module_label,
    signature_element,
    without_rank,
)

X = torch.rand(4, 4) + 0.5
IMAGE = torch.rand(2, 4, 8, 8)


class Calls(TorchFunctionMode):
    """Collects the callables that run, as the worker does."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def calls_of(run) -> list:
    with Calls() as calls:
        run()
    return calls.seen


def labels(run) -> list[str]:
    return [label for func in calls_of(run) if (label := label_of(func))]


def elements(run) -> list[str]:
    return [element for func in calls_of(run) if (element := element_of(func))]


@pytest.mark.parametrize(
    ("label", "spellings"),
    [
        ("torch.sigmoid", [X.sigmoid, lambda: torch.sigmoid(X), lambda: F.sigmoid(X)]),
        ("torch.sigmoid", [lambda: torch.special.expit(X)]),
        ("torch.nn.functional.relu", [X.relu, lambda: torch.relu(X), lambda: F.relu(X)]),
        ("torch.nn.functional.relu", [lambda: torch.ops.aten.relu(X)]),
        ("torch.softmax", [lambda: X.softmax(1), lambda: torch.softmax(X, 1)]),
        ("torch.nn.functional.gelu", [lambda: F.gelu(X)]),
        ("torch.nn.functional.conv2d", [lambda: F.conv2d(IMAGE, IMAGE), lambda: torch.conv2d(IMAGE, IMAGE)]),
        ("torch.nn.functional.max_pool2d", [lambda: F.max_pool2d(IMAGE, 2)]),
        ("torch.nn.functional.max_pool2d", [lambda: torch.max_pool2d(IMAGE, 2)]),
        ("torch.matmul", [lambda: X @ X, lambda: X.matmul(X)]),
        ("torch.pow", [lambda: X**2, lambda: 2**X, lambda: X.pow(2), lambda: torch.pow(X, 2)]),
        ("torch.mul", [lambda: torch.mul(X, 2), lambda: torch.multiply(X, 2)]),
        ("torch.cat", [lambda: torch.cat([X, X]), lambda: torch.concat([X, X])]),
        ("torch.cumsum", [lambda: X.cumsum(0), lambda: torch.cumsum(X, 0)]),
        ("torch.einsum", [lambda: torch.einsum("ij,jk->ik", X, X)]),
        ("torch.clamp", [lambda: X.clone().clamp_(0, 1), lambda: torch.clip(X, 0, 1)]),
        ("torch.linalg.norm", [lambda: torch.linalg.norm(X)]),
        ("torch.norm", [X.norm]),
        ("torch.fft.fft", [lambda: torch.fft.fft(X)]),
        ("torch.nn.functional.unfold", [lambda: F.unfold(IMAGE, 2)]),
    ],
)  # fmt: skip
def test_every_spelling_has_the_same_label(label, spellings):
    for spelling in spellings:
        assert labels(spelling) == [label]


@pytest.mark.parametrize(
    "run",
    [
        lambda: X.view(16).reshape(4, 4).transpose(0, 1).contiguous(),
        lambda: X.T,
        lambda: X.mT.real,
        lambda: X[0, 1:],
        lambda: X.unfold(0, 2, 1),
        lambda: X.float().half().to(torch.float64),
        lambda: torch.zeros_like(X).new_ones(3),
        lambda: X > 0.5,
        lambda: X == 1,
        lambda: (X + 1) * 2 - X / 3,
        lambda: (1 - X, 2 / X, 2 // X, -X, X % 2),
        lambda: X.add(X),
        lambda: ~(X > 1) & (X < 2) | (X > 3),
        lambda: X.size(0) + X.dim() + X.shape[0],
        lambda: F.dropout(X, 0.5, training=False),
        lambda: len(X),
    ],
)
def test_what_is_no_operator_has_no_label(run):
    assert labels(run) == []


def test_arithmetic_and_comparisons_count_in_signatures_only():
    assert elements(lambda: 1 - X / 3) == ["div", "sub"]
    assert elements(lambda: X > 1) == ["gt"]
    assert elements(lambda: torch.add(X, 1)) == elements(lambda: X + 1) == ["add"]


def test_views_and_copies_are_elements_that_do_no_work():
    seen = elements(lambda: X.T.contiguous().view(-1)[0].float().clone())
    assert seen == ["transpose", "contiguous", "reshape", "to", "clone"]
    assert not any(computes(element) for element in seen)
    assert elements(lambda: torch.zeros_like(F.dropout(X, 0.1, False)).unfold(0, 2, 1)) == [
        "dropout",
        "zeroslike",
        "unfold_view",
    ]
    assert computes("add")
    assert computes("unfold")
    assert elements(lambda: X.flatten().size(0)) == elements(lambda: X.reshape(-1)) == ["reshape"]


@pytest.mark.parametrize("run", [lambda: X @ X, lambda: torch.mm(X, X), lambda: torch.bmm(X[None], X[None])])
def test_products_of_matrices_are_one_element(run):
    assert elements(run) == ["matmul"]


MODULES = [
    nn.ReLU(), nn.GELU(), nn.SiLU(), nn.ELU(), nn.LeakyReLU(), nn.Softplus(), nn.Hardswish(), nn.Hardtanh(),
    nn.Mish(), nn.Sigmoid(), nn.Tanh(), nn.Softsign(), nn.LogSigmoid(), nn.Tanhshrink(), nn.Softmax(1),
    nn.LogSoftmax(1), nn.GLU(), nn.PReLU(), nn.Threshold(0.1, 0.0), nn.Softmin(1),
    nn.Softshrink(), nn.CELU(), nn.SELU(), nn.Linear(8, 3), nn.Conv2d(4, 2, 3), nn.ConvTranspose2d(4, 2, 3),
    nn.BatchNorm2d(4), nn.InstanceNorm2d(4), nn.GroupNorm(2, 4), nn.LayerNorm(8), nn.RMSNorm(8),
    nn.LocalResponseNorm(2), nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2),
    nn.AdaptiveMaxPool2d(2), nn.LPPool2d(2, 2), nn.ReflectionPad2d(1), nn.ZeroPad2d(1),
    nn.ConstantPad2d(1, 0.0), nn.ReplicationPad2d(1), nn.Upsample(scale_factor=2),
    nn.UpsamplingNearest2d(scale_factor=2), nn.PixelShuffle(2), nn.PixelUnshuffle(2), nn.ChannelShuffle(2),
    nn.Unfold(2),
]  # fmt: skip
PAIRS = [
    nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss(), nn.HuberLoss(), nn.KLDivLoss(reduction="batchmean"),
    nn.BCELoss(), nn.BCEWithLogitsLoss(), nn.PoissonNLLLoss(), nn.SoftMarginLoss(), nn.CrossEntropyLoss(),
    nn.CosineSimilarity(), nn.PairwiseDistance(),
]  # fmt: skip


@pytest.mark.parametrize("module", MODULES + PAIRS, ids=lambda module: type(module).__name__)
def test_a_module_and_its_function_are_one_element(module):
    inputs = [torch.rand(2, 4)] * 2 if module in PAIRS else [IMAGE]
    as_module = without_rank(module_element(module))
    called = elements(lambda: module.eval()(*inputs))
    assert as_module in called
    assert set(called) <= {as_module, "add", "sub"}


def test_labels_of_modules():
    class Inherits(nn.Conv2d):
        pass

    class Overrides(nn.Conv2d):
        def forward(self, x):
            return x

    assert module_label(nn.Conv2d(1, 1, 1)) == "torch.nn.Conv2d"
    assert module_label(Inherits(1, 1, 1)) == "torch.nn.Conv2d"
    assert module_label(nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))) == "torch.nn.Linear"
    assert module_label(Overrides(1, 1, 1)) is None
    for silent in (
        nn.Sequential(),
        nn.ModuleList(),
        nn.Identity(),
        nn.Flatten(),
        nn.Dropout2d(),
        nn.Module(),
    ):
        assert module_label(silent) is None
    assert module_element(nn.Sequential()) is None
    assert module_element(nn.Identity()) == "identity"
    assert module_element(nn.Dropout2d()) == signature_element("torch.nn.functional.dropout2d")


def test_whatever_torch_makes_of_a_name_it_is_the_same_operator():
    for name in ("mm", "bmm", "softmax", "cumsum", "layer_norm", "max", "where", "cdist", "lerp", "addmm"):
        assert canonical_name(resolve_name(getattr(torch, name))) == canonical_name(f"torch.{name}")


def test_documented_aliases_are_followed():
    """torch says `Alias for :func:`torch.x`` where two names are one operator."""
    missing = []
    for name in dir(torch):
        doc = str(getattr(getattr(torch, name), "__doc__", ""))
        alias = re.search(r"Alias (?:for|of) :func:`torch\.(\w+)`", doc)
        if alias and canonical_name(f"torch.{name}") != canonical_name(f"torch.{alias[1]}"):
            missing.append((name, alias[1]))
    assert missing == []


@pytest.mark.parametrize(
    "path", ["torch.nn.init.zeros_", "torch.nn.Parameter", "torch._C._set_grad_enabled", "x"]
)
def test_what_is_not_public_has_no_name(path):
    assert canonical_name(path) is None
    assert signature_element(path) is None
