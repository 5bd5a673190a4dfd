"""The text that users read."""

import pytest

from composer.plan import Input, IsPositive, Plan, Size, Step, Value
from composer.render import render

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
            step("torch.where", "function", IsPositive(Value("y")), Value("x"), Value("y")),
            step("torch.nn.Conv2d", "module", *CONVOLUTION),
            step("torch.nn.functional.softmin", "function", Value("x"), dim=1),
        ),
        sizes=SIZES,
        axes={},
    )
    assert render(plan) == EXPECTED


@pytest.mark.parametrize(
    ("operator", "attribute"),
    [("RMSNorm", "rms_norm"), ("LogSoftmax", "log_softmax"), ("ELU", "elu"), ("AvgPool1d", "avg_pool1d")],
)
def test_modules_are_kept_under_their_own_name(operator, attribute):
    plan = Plan(
        inputs=(Input("x", ("BATCH_SIZE", "CHANNELS")),),
        steps=(step(f"torch.nn.{operator}", "module"),),
        sizes=SIZES,
        axes={},
    )
    assert f"self.{attribute} = nn.{operator}()" in render(plan)
