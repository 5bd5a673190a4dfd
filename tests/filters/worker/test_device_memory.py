"""Calls that run out of the device's memory and are made again with more."""

import gc
import weakref
from types import SimpleNamespace

import pytest
import torch

from filters.worker.device_memory import DeviceMemory, Memory
from filters.worker.faults import CandidateFault
from tests.filters.models import passing_on


class Steps(Memory):
    """A device with so much for this worker, of which it has 1 to begin with."""

    def __init__(self, total):
        self.total = total
        self.granted = 1

    def more(self):
        """Double the share."""
        before, self.granted = self.granted, min(2 * self.granted, self.total)
        return self.granted if self.granted > before else 0


def needing(memory, wanted, error):
    """Return a call that fails below the share that it needs."""

    def call():
        if memory.granted < wanted:
            raise error
        return memory.granted

    return call


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory"),
    MemoryError(),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory"),
    CandidateFault("out_of_memory", "forward: OutOfMemoryError"),
]


@pytest.mark.parametrize("error", OUT_OF_MEMORY)
def test_a_call_is_made_again_until_there_is_enough(error):
    memory = Steps(16)
    assert memory.enough_for(needing(memory, 5, error)) == 8


@pytest.mark.parametrize("error", OUT_OF_MEMORY)
def test_what_is_too_large_for_the_device_fails(error):
    memory = Steps(16)
    with pytest.raises(type(error)):
        memory.enough_for(needing(memory, 17, error))
    assert memory.granted == 16


@pytest.mark.parametrize(
    "error", [ValueError("shape"), CandidateFault("forward_failed", "forward: ValueError")]
)
def test_other_failures_are_no_reason_to_ask(error):
    memory = Steps(16)
    with pytest.raises(type(error)):
        memory.enough_for(needing(memory, 5, error))
    assert memory.granted == 1


def test_the_failed_call_holds_nothing_while_more_is_asked_for():
    class Watching(Steps):
        def more(self):
            gc.collect()
            seen.append(kept[-1]())
            return super().more()

    kept, seen = [], []

    def call():
        tensor = torch.ones(4)
        kept.append(weakref.ref(tensor))
        if memory.granted < 2:
            raise torch.OutOfMemoryError("CUDA out of memory")

    memory = Watching(4)
    memory.enough_for(call)
    assert seen == [None]


def test_a_call_that_asks_for_too_little_by_itself_is_not_made_again_for_ever():
    class Asking(Steps):
        def ask(self, counted):
            self.granted = min(max(counted(), self.least_bytes), self.total)

    def call():
        memory.ask(lambda: 2)
        if memory.granted < wanted:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return memory.granted

    memory, wanted = Asking(64), 9
    assert memory.enough_for(call) == 16
    memory.ask(lambda: 3)  # what comes after it is asked for as before
    assert memory.granted == 3
    wanted = 65
    with pytest.raises(torch.OutOfMemoryError):
        memory.enough_for(call)


def test_a_candidate_that_needs_more_than_any_may_fails_before_it_has_the_whole_device(monkeypatch):
    class Granting:
        def __init__(self):
            self.wanted = []

        def memory(self, kept, wanted):
            self.wanted.append(wanted)
            return wanted

    for name in ("empty_cache", "memory_reserved", "set_per_process_memory_fraction"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=1 << 37))
    channel = Granting()
    memory = DeviceMemory(channel, 3 << 30)

    def call():
        raise torch.OutOfMemoryError("CUDA out of memory")

    with memory.at_most(8 << 30), pytest.raises(CandidateFault) as raised:
        memory.enough_for(call)
    assert raised.value.fault == "too_much_memory"
    assert channel.wanted == [6 << 30, 8 << 30]
    memory.ask(lambda: 20 << 30)
    assert channel.wanted[-1] > 20 << 30


def test_on_a_cpu_nobody_has_to_ask():
    def counted():
        raise AssertionError("counted for nothing")

    memory = Memory()
    memory.ask(counted)
    assert memory.more() == 0


FAILING_ONCE = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return x * self.calls
"""


def test_forwards_draws_and_copies_are_made_again(subject):
    made = subject(FAILING_ONCE, built=False)
    made.memory = Steps(4)
    made.build()
    made.inputs = made.draw(0)
    assert torch.equal(made.forward(made.inputs), made.inputs[0] * 2)
    assert made.memory.granted == 2


def test_a_draw_that_is_made_again_is_the_same_draw(subject):
    inputs = "[torch.randn(4), *([] if memory.pop() else fail())]"
    body = passing_on("x * 2") + (
        "\n\nmemory = [1, 0]\n\ndef fail():\n    torch.randn(7)\n    raise torch.OutOfMemoryError\n"
    )
    made = subject(body, inputs, built=False)
    made.memory = Steps(4)
    first = made.draw(0)
    made.task.memory.append(1)
    assert torch.equal(first[0], made.draw(0)[0])
    assert made.memory.granted == 2
