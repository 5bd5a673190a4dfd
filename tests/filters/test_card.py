"""Several devices on one machine: workers spread over them, each with a lock and a budget of its own."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from composer.candidate import Candidate
from filters.card import Card, Slots, visible_cards
from filters.engine import Engine
from filters.errors import SandboxFault
from filters.exclusive import Exclusive
from filters.policy import Policy
from filters.settings import FilterSettings

TASK = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""


class Watched(Exclusive):
    """Counts the children that it has seen, and how many there were at most at once."""

    def __init__(self):
        super().__init__()
        self.seen = self.most = 0

    def enter(self, child):
        super().enter(child)
        self.seen += 1
        self.most = max(self.most, len(self._running))


def test_places_are_spread_evenly_and_a_free_one_is_waited_for():
    cards = [Card(number=0), Card(number=1)]
    slots = Slots(cards, 4)
    held, all_taken, go_on = Counter(), threading.Barrier(5), threading.Event()

    def work():
        with slots.one() as card:
            held[card.number] += 1
            all_taken.wait(5)
            go_on.wait(5)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    all_taken.wait(5)
    assert held == {0: 2, 1: 2}
    late = threading.Thread(target=lambda: slots.one().__enter__(), daemon=True)
    late.start()
    late.join(0.2)
    assert late.is_alive()
    go_on.set()
    late.join(5)
    assert not late.is_alive()


@pytest.mark.parametrize(("chosen", "count"), [("2", 1), ("0,3", 2), ("GPU-1a,GPU-2b,GPU-3c", 3)])
def test_as_many_devices_as_the_environment_names(monkeypatch, chosen, count):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert visible_cards("cuda") == count
    assert visible_cards("cpu") == 1


def test_candidates_run_on_both_of_two_devices_each_with_its_own_lock(monkeypatch):
    cards = [Card(exclusive=Watched()), Card(exclusive=Watched())]
    ask = Engine._ask_environment
    monkeypatch.setattr(Engine, "_ask_environment", lambda engine: (ask(engine)[0], cards))
    settings = FilterSettings(device="cpu", workers=4, compile_backend="aot_eager")
    candidates = [
        Candidate(index=k, name=str(k), code=TASK.replace("64, 64", f"64, {64 + k}")) for k in range(8)
    ]
    policy = Policy(eager_ms_min=0.0, eager_ms_max=1e6, tensor_time_share_min=0.0)
    with Engine(settings, policy) as engine, ThreadPoolExecutor(4) as pool:
        measurements = list(pool.map(engine.measure, candidates))
    assert all(each.fresh_process_equal and each.compile_ms for each in measurements)
    assert [card.exclusive.most for card in cards] == [2, 2]
    assert sum(card.exclusive.seen for card in cards) == 2 * len(candidates)


def test_devices_of_several_kinds_are_refused(monkeypatch):
    converse = Engine._converse

    def answering(engine, spawner, job, card, *rest, **options):
        conversation = converse(engine, spawner, job, card, *rest, **options)
        if job["mode"] == "environment":
            conversation.answers["cards"] = [{"name": "A", "bytes": 1 << 34}, {"name": "B", "bytes": 1 << 35}]
        return conversation

    monkeypatch.setattr(Engine, "_converse", answering)
    settings = FilterSettings(device="cpu", workers=1, compile_backend="aot_eager")
    with (
        pytest.raises(SandboxFault, match="devices of several kinds here: A, B;"),
        Engine(settings, Policy()),
    ):
        pass
