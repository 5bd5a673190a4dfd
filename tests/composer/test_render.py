"""The text that users read."""

import pytest

from composer.plan import Input, Plan, Size, Step, Term, Value, X
from composer.render import render
from composer.rules.terms import is_positive

EXPECTED = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels, kernel_size):
        super().__init__()
        self.conv2d = nn.Conv2d(channels, channels, kernel_size, padding="same")
        self.conv2d_2 = nn.Conv2d(channels, channels, kernel_size)

    def forward(self, x, y):
        x = self.conv2d(x)
        x = torch.where(y > 0, x, y)
        x = self.conv2d_2(x)
        x = F.softmin(x, dim=1)
        return x


BATCH_SIZE = 4
CHANNELS = 16
SIDE = 24
KERNEL_SIZE = 3


def get_inputs():
    return [
        torch.randn(BATCH_SIZE, CHANNELS, SIDE, SIDE),
        torch.randn(BATCH_SIZE, CHANNELS, SIDE, SIDE),
    ]


def get_init_inputs():
    return [CHANNELS, KERNEL_SIZE]
"""

SHAPE = ("BATCH_SIZE", "CHANNELS", "SIDE", "SIDE")
CONVOLUTION = (Size("CHANNELS"), Size("CHANNELS"), Size("KERNEL_SIZE"))
SIZES = {"BATCH_SIZE": 4, "CHANNELS": 16, "SIDE": 24, "KERNEL_SIZE": 3}


def step(operator: str, kind: str, *args: object, **kwargs: object) -> Step:
    return Step(operator=operator, kind=kind, args=args, kwargs=tuple(kwargs.items()))


def test_plan_is_written_as_a_plain_module():
    plan = Plan(
        inputs=(Input("x", SHAPE), Input("y", SHAPE)),
        steps=(
            step("torch.nn.Conv2d", "module", *CONVOLUTION, padding="same"),
            step("torch.where", "function", is_positive(Value("y")), X, Value("y")),
            step("torch.nn.Conv2d", "module", *CONVOLUTION),
            step("torch.nn.functional.softmin", "function", X, dim=1),
        ),
        sizes=SIZES,
        axes={},
    )
    assert render(plan) == EXPECTED


@pytest.mark.parametrize(
    ("operator", "attribute"),
    [
        ("RMSNorm", "rms_norm"),
        ("LogSoftmax", "log_softmax"),
        ("ELU", "elu"),
        ("PReLU", "prelu"),
        ("AvgPool1d", "avg_pool1d"),
    ],
)
def test_modules_are_kept_under_their_own_name(operator, attribute):
    plan = Plan(
        inputs=(Input("x", ("BATCH_SIZE", "CHANNELS")),),
        steps=(step(f"torch.nn.{operator}", "module"),),
        sizes=SIZES,
        axes={},
    )
    assert f"self.{attribute} = nn.{operator}()" in render(plan)


BRANCHES = """
    def forward(self, x, y):
        gate = torch.sort(x, dim=1).values
        x = F.embedding(y, x)
        x = x.flatten(2).transpose(1, 2)
        x = x * gate
        return x
"""


def test_branches_views_and_choices_of_a_result_are_written_plainly():
    flat = Term("{0}.flatten(2).transpose(1, 2)", lambda x: x, (X,))
    product = Term("{0} * {1}", lambda one, other: one * other, (X, Value("gate")))
    plan = Plan(
        inputs=(
            Input("x", ("CHANNELS", "SIDE"), dtype="bfloat16"),
            Input("y", ("BATCH_SIZE", "SIDE"), "indices", below="CHANNELS"),
        ),
        steps=(
            Step(operator="torch.sort", kind="function", args=(X,), kwargs=(("dim", 1),), suffix=".values",
                 target="gate"),
            step("torch.nn.functional.embedding", "function", Value("y"), X),
            step("", "function", flat),
            step("", "function", product),
        ),
        sizes=SIZES,
        axes={},
    )  # fmt: skip
    code = render(plan)
    assert BRANCHES in code
    assert "torch.randn(CHANNELS, SIDE, dtype=torch.bfloat16)" in code
    assert "torch.randint(0, CHANNELS, (BATCH_SIZE, SIDE))" in code
