"""One engine for all executed tests: real children, small inputs, `aot_eager` instead of inductor."""

import textwrap

import pytest

from composer.candidate import Candidate
from filters.engine import Engine
from filters.judge import judge
from filters.policy import Policy
from filters.settings import FilterSettings

TINY_TASKS = Policy(eager_ms_min=0.0, eager_ms_max=1e6, tensor_time_share_min=0.0)
"""Small inputs run for microseconds, most of them Python's, and on a busy machine for anything."""

_TASK = """\
import collections
import functools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

{body}

def get_inputs():
    return {inputs}


def get_init_inputs():
    return {init}
"""


def _task(body: str, inputs: str = "[torch.randn(8, 16)]", init: str = "[]") -> str:
    """Return the source of a task around a class `Model`."""
    return _TASK.format(body=textwrap.dedent(body), inputs=inputs, init=init)


@pytest.fixture(scope="session")
def task():
    return _task


@pytest.fixture(scope="session")
def engine():
    settings = FilterSettings(device="cpu", workers=2, memory_gib=1.0, compile_backend="aot_eager")
    with Engine(settings, TINY_TASKS) as running:
        yield running


@pytest.fixture(scope="session")
def measure(engine):
    """Measure the task around a class `Model`; source filters are not asked."""

    def run(body, inputs="[torch.randn(8, 16)]", init="[]", **claims):
        candidate = Candidate(index=0, name="task", code=_task(body, inputs, init), **claims)
        return candidate, engine.measure(candidate)

    return run


@pytest.fixture(scope="session")
def check(measure):
    """Measure and judge the task around a class `Model`; the source filters have tests of their own."""

    def run(body, inputs="[torch.randn(8, 16)]", init="[]", policy=TINY_TASKS, **claims):
        candidate, measurement = measure(body, inputs, init, **claims)
        return judge(candidate, measurement, policy, skip_source_filters=True)

    return run
