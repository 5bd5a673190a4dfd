"""Who shares a worker's process with whom."""

import dataclasses

import pytest

from filters import conversation
from filters.engine import Engine
from filters.reasons import Reason
from tests.filters.confined import LIMITS, open_layer

ROOMY = dataclasses.replace(LIMITS, memory_bytes=4 << 30)

TASK = """
import os

import torch
import torch.nn as nn

{first}


class Model(nn.Module):
    def forward(self, x):
        {forward}


def get_inputs():
    return [torch.randn(8, 4)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def confined(tmp_path_factory):
    layer = open_layer("namespaces", tmp_path_factory, compiles=True)
    yield layer
    layer.close()


def pid_and_facts(confined, *, stays=True, first="", forward="return x.sin()"):
    """Run a task; return the process that did it and what it told."""
    job = confined.job(TASK.format(first=first, forward=forward)) | {"stays": stays}
    return confined.talk(job | {"claim": {"requested_ops": [], "whole_layer": False}}, ROOMY)


def test_candidates_that_may_share_a_process_do_and_see_nothing_of_one_another(confined):
    leftover = "nn.leftover = getattr(torch, 'kept', 0)"
    first, facts = pid_and_facts(confined)
    second, more = pid_and_facts(confined, forward="return x.cos()")
    assert first == second
    assert facts.fault is more.fault is None
    assert (facts.ops, more.ops) == (("torch.sin",), ("torch.cos",))
    assert facts.output_digest != more.output_digest
    third, _ = pid_and_facts(confined, first=leftover)
    assert third == first
    fourth, clean = pid_and_facts(confined, first="assert not hasattr(nn, 'leftover')")
    assert fourth != first
    assert clean.fault is None


def test_a_foreign_candidate_has_its_own(confined):
    shared, _ = pid_and_facts(confined)
    own, facts = pid_and_facts(confined, stays=False)
    assert own != shared
    assert facts.fault is None


@pytest.mark.parametrize(
    ("forward", "fault"),
    [("raise ValueError('no')", "forward_failed"), ("os._exit(3)", "crashed"), ("os.abort()", "crashed")],
)
def test_whoever_fails_is_the_last_of_its_process(confined, forward, fault):
    pid_and_facts(confined, forward="os._exit(3)")  # so that the next is the first of its process
    before, _ = pid_and_facts(confined)
    failed, facts = pid_and_facts(confined, forward=forward)
    after, good = pid_and_facts(confined)
    assert facts.fault == fault
    assert (failed == before, after == before) == (True, False)
    assert good.fault is None


def test_a_process_is_replaced_after_a_number_of_candidates(confined):
    pid_and_facts(confined, forward="os._exit(3)")  # likewise
    pids = [pid_and_facts(confined)[0] for _ in range(4)]
    assert len(set(pids[:3])) == 1
    assert pids[3] != pids[0]


def test_a_process_that_holds_on_to_device_memory_is_replaced(confined, monkeypatch):
    before, _ = pid_and_facts(confined)
    monkeypatch.setattr(conversation, "_KEPT_BYTES_MAX", -1)
    last, facts = pid_and_facts(confined)
    monkeypatch.undo()
    after, _ = pid_and_facts(confined)
    assert facts.fault is None
    assert after not in (before, last)


def test_shared_processes_give_the_same_verdicts(engine, task, monkeypatch, check):
    bodies = ["x.sin()", "x * 0", "x.sin()", "x.softmax(-1)"]
    forwards = [
        f"class Model(nn.Module):\n    def forward(self, x):\n        return {body}" for body in bodies
    ]
    alone = [check(body).reason for body in forwards]
    monkeypatch.setattr(Engine, "_stays", lambda engine, candidate: True)
    assert [check(body).reason for body in forwards] == alone
    assert alone == [Reason.ACCEPTED, Reason.VANISHING_OUTPUT, Reason.ACCEPTED, Reason.ACCEPTED]
