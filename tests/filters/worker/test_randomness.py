import random

import numpy as np
import pytest
import torch

from filters.worker.randomness import advanced, seed_all, states

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda: torch.rand(1), "cpu"),
        (random.random, "python"),
        (lambda: np.random.rand(), "numpy"),
    ],
)
def test_a_draw_advances_its_generator(draw, name):
    before = states(CPU)
    draw()
    assert advanced(before, states(CPU)) == (name,)


def test_a_generator_of_its_own_advances_none():
    before = states(CPU)
    torch.rand(1, generator=torch.Generator().manual_seed(1))
    assert advanced(before, states(CPU)) == ()


def test_a_seed_sets_all_generators():
    seed_all(5)
    first = states(CPU), torch.rand(3).tolist(), random.random(), np.random.rand()
    seed_all(5)
    assert (states(CPU), torch.rand(3).tolist(), random.random(), np.random.rand()) == first
    seed_all(6)
    assert set(advanced(first[0], states(CPU))) == {"cpu", "python", "numpy"}
