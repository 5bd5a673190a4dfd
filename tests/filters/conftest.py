"""One engine for all executed tests: real children, small inputs, `aot_eager` instead of inductor."""

import contextlib
import dataclasses
import textwrap

import pytest

from composer.candidate import Candidate
from filters.engine import Engine
from filters.judge import judge
from filters.measurement import Measurement
from filters.policy import Policy
from filters.sandbox.layers import LAYERS
from filters.settings import FilterSettings
from tests.filters.confined import Confined, open_layer

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


_GOOD = Measurement(
    stages_done=("build", "conduct", "repeatability", "output", "degenerate", "labels", "runtime"),
    kb_ast_similarity=0.3,
    kb_nearest="level1/1_A",
    kb_signature_match="",
    kb_operator_similarity=0.5,
    kb_operator_nearest="level1/1_A",
    kb_same_operators_similarity=0.0,
    kb_same_operators_nearest="",
    contract_fault="",
    inputs_fixed=False,
    input_shapes=((8, 16),),
    input_dtypes=("float32",),
    input_bytes=512,
    n_params=272,
    output_shapes=((8, 16),),
    output_dtypes=("float32",),
    peak_memory_mb=1.0,
    side_effects=(),
    mutated_inputs=(),
    rng_consumed=(),
    seed_changes_output=False,
    repeats_equal=True,
    state_changed=False,
    train_eval_same=True,
    repeated_scatter_targets="",
    output_digest="0" * 64,
    fresh_process_equal=True,
    unsupported_output="",
    non_finite_values=0,
    output_elements=128,
    passing_answers=(),
    varies_along_batch=True,
    ignored_inputs=(),
    inert_parameters=(),
    inert_parameter_share=0.0,
    ops=("torch.nn.Linear", "torch.sigmoid"),
    signature=("linear", "sigmoid"),
    aten_ops=("addmm", "sigmoid"),
    aten_nodes=2,
    ineffective_ops=(),
    eager_ms=5.0,
    eager_ms_iqr=0.1,
    eager_samples=12,
    tensor_time_share=0.9,
    graphs=1,
    graph_breaks=0,
    compile_seconds=2.0,
    compile_ms=4.0,
    compile_ms_iqr=0.1,
    compile_samples=15,
    structure_fault="",
    compared_with="fp64",
    eager_error=1e-7,
    compiled_error=1e-7,
    allowed_error=1e-5,
    compiled_allclose=True,
)


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
        code = _task(body, inputs, init)
        candidate = Candidate(index=0, name="task", code=code, origin="rules", **claims)
        return candidate, engine.measure(candidate)

    return run


@pytest.fixture(scope="session")
def check(measure):
    """Measure and judge the task around a class `Model`; the source filters have tests of their own."""

    def run(body, inputs="[torch.randn(8, 16)]", init="[]", policy=TINY_TASKS, **claims):
        candidate, measurement = measure(body, inputs, init, **claims)
        return judge(candidate, measurement, policy, skip_source_filters=True)

    return run


@pytest.fixture
def good():
    """The facts of an accepted task; keyword arguments replace some."""

    def with_facts(**facts):
        return dataclasses.replace(_GOOD, **facts)

    return with_facts


@pytest.fixture(scope="module", params=LAYERS)
def any_layer(request, tmp_path_factory):
    """Every way to run workers, with and without a sandbox."""
    with contextlib.closing(open_layer(request.param, tmp_path_factory)) as confined:
        yield confined


@pytest.fixture
def sandboxed(any_layer):
    """Every way but the plain one."""
    if any_layer.layer.name == "none":
        pytest.skip("plain processes are not confined")
    return any_layer


@pytest.fixture(scope="module")
def confined(tmp_path_factory):
    """The best layer that works here."""
    with contextlib.closing(Confined("auto", tmp_path_factory.mktemp("scratch").resolve())) as best:
        yield best
