"""What the engine tells of tasks that real children measure, and how settings change it."""

import pytest
import torch

from filters.judge import judge
from filters.policy import Policy
from filters.reasons import Reason, Stage
from tests.filters.models import MIX, passing_on


def test_all_facts_of_an_accepted_task(measure):
    _, found = measure(
        """
        class Model(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.mix = nn.Linear(16, width)

            def forward(self, x):
                return F.gelu(self.mix(x))
        """,
        init="[4]",
    )
    assert found.fault is None
    assert found.stages_done == (
        *("build", "conduct", "repeatability", "output", "degenerate", "labels"),
        *("runtime", "compile", "compare"),
    )
    assert found.input_shapes == ((8, 16),)
    assert found.output_shapes == ((8, 4),)
    assert found.output_dtypes == ("float32",)
    assert found.n_params == 68
    assert found.ops == ("torch.nn.Linear", "torch.nn.functional.gelu")
    assert found.signature == ("linear", "gelu")
    assert found.flops == 2 * 8 * 16 * 4
    assert found.train_eval_same is True
    assert found.compared_with == "fp64"
    assert (found.graphs, found.graph_breaks) == (1, 0)
    assert 10 <= found.eager_samples <= 30
    assert found.side_effects == ()


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        (("torch.nn.Linear", "F.relu"), Reason.ACCEPTED),
        (("torch.nn.Linear", "torch.tanh"), Reason.LABEL_MISMATCH),
        (("torch.nn.Dropout",), Reason.LABEL_MISMATCH),
        (("torch.abs",), Reason.OPERATOR_IGNORED),
    ],
)
def test_requested_operators(check, requested, reason):
    body = passing_on("self.drop(self.mix(x).relu()).abs()", MIX + "; self.drop = nn.Dropout(0.5)")
    verdict = check(body, requested_ops=requested)
    assert verdict.reason is reason
    assert verdict.stage is (None if reason is Reason.ACCEPTED else Stage.LABELS)


def test_a_whole_layer_may_be_long(check):
    body = passing_on("x.sin().cos().tan().sinh().atan().tanh()")
    assert check(body, data_source="transformers").reason is Reason.ACCEPTED


def test_an_unrolled_loop_is_no_layer(check):
    body = """
    class Model(nn.Module):
        def forward(self, x):
            for step in range(2100):
                x = x * 0.999
            return x
    """
    verdict = check(body, data_source="transformers")
    assert verdict.reason is Reason.TOO_MANY_OPS
    assert verdict.evidence == {"aten_nodes": 2100}


def test_runtime_is_judged_from_one_measurement(measure):
    body = """
    class Model(nn.Module):
        def forward(self, x):
            for step in range(300_000):
                pass
            return x * x
    """
    candidate, found = measure(body)
    for changed, reason in (
        ({"eager_ms_min": 1e5}, Reason.TOO_FAST),
        ({"eager_ms_max": 1e-4}, Reason.TOO_SLOW),
        ({"tensor_time_share_min": 0.5}, Reason.PADDED),
    ):
        policy = Policy(
            **({"eager_ms_min": 0.0, "eager_ms_max": 1e6, "tensor_time_share_min": 0.0} | changed)
        )
        verdict = judge(candidate, found, policy, skip_source_filters=True)
        assert verdict.reason is reason
        assert verdict.stage is Stage.RUNTIME


def test_recorded_times_take_the_place_of_measured_ones(engine, measure, monkeypatch):
    body = passing_on("x.sin()")
    candidate, _ = measure(body)
    times = {
        **{"eager_ms": 12.5, "eager_ms_iqr": 0.5, "eager_samples": 7, "tensor_time_share": 0.75},
        **{"compile_ms": 6.5, "compile_ms_iqr": 0.25, "compile_samples": 9},
    }
    monkeypatch.setattr(engine, "_timings", {candidate.id: times})
    found = engine.measure(candidate)
    assert {name: getattr(found, name) for name in times} == times


def test_the_same_task_is_measured_alike_every_time(measure):
    body = passing_on("self.mix(x).softmax(-1)", MIX)
    first, second = (measure(body)[1] for _ in range(2))
    assert first.output_digest == second.output_digest
    assert first.eager_error == second.eager_error


def test_the_environment_names_the_machine(engine):
    assert engine.environment.torch_version == torch.__version__
    assert engine.environment.compile_backend == "aot_eager"
    assert len(engine.environment.key) == 16
