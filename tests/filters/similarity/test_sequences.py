import numpy as np
import pytest

from filters.similarity.sequences import operator_sequence, operator_similarities

LAYER = """
    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.proj = nn.Linear(width, width)

        def forward(self, x):
            return F.relu(self.proj(x)) / 2.0
"""
RENAMED = """
    class Base(nn.Module):
        '''Everything but the public name.'''

        def __init__(self, n: int) -> None:
            super(Base, self).__init__()
            assert n > 0
            self.stage: nn.Linear = nn.Linear(n, n)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.stage(rows)) / 2.0

    class Model(Base):
        pass
"""


def test_names_bases_and_decoration_make_no_difference(task):
    assert operator_sequence(task(LAYER, init="[16]")) == operator_sequence(task(RENAMED, init="[96]"))


def test_operators_do_make_one(task):
    first, second = operator_sequence(task(LAYER)), operator_sequence(task(LAYER.replace("relu", "gelu")))
    assert first != second
    ((score,),) = operator_similarities([first], [second])
    assert score == pytest.approx(1 - 2 / (len(first) + len(second)))


def test_the_cutoff_leaves_high_scores_alone(task):
    layer = operator_sequence(task(LAYER))
    others = [layer, layer[: len(layer) // 2], layer[1:]]
    every, high = operator_similarities([layer], others), operator_similarities([layer], others, 0.9)
    assert np.all((high == every) | ((every < 0.9) & (high == 0)))
    assert high[0, 0] == 1.0
    assert high[0, 1] == 0.0
