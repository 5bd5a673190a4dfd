import pytest

from composer.llm.resizing import factor_for, scaled

TASK = """import torch
import torch.nn as nn

FEATURES = 1024  # größer
ROWS = {rows}


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.tanh(self.linear(x))


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES]
"""


def test_only_the_constant_that_nothing_but_the_inputs_uses_is_changed():
    assert scaled(TASK.format(rows=96), 4) == TASK.format(rows=384)
    assert scaled(TASK.format(rows=384), 0.25) == TASK.format(rows=96)


def test_constants_may_be_assigned_together():
    code = TASK.replace("FEATURES = 1024  # größer\nROWS = {rows}", "FEATURES, ROWS = 1024, 96")
    assert scaled(code, 2) == code.replace("1024, 96", "1024, 192")


@pytest.mark.parametrize(
    "code",
    [
        TASK.format(rows=96).replace("randn(ROWS", "randn(96"),
        TASK.format(rows=96).replace("return [FEATURES]", "return [FEATURES + 0 * ROWS]"),
        TASK.format(rows="2 * 48"),
        "def get_inputs(:",
        TASK.format(rows=96).replace("\n", "\r\n"),
    ],
)
def test_where_no_constant_is_free_nothing_is_changed(code):
    assert scaled(code, 2) is None


def test_the_factor_aims_at_the_middle_of_the_window():
    assert factor_for(0.5, 1, 16) == 8
    assert factor_for(400, 1, 16) == 0.01
