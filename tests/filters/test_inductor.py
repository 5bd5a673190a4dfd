"""A handful of tasks through the compiler that runs in earnest; the first one starts a warmed engine."""

import pytest

from composer.candidate import Candidate
from filters.engine import Engine
from filters.judge import judge
from filters.policy import Policy
from filters.reasons import Reason
from filters.settings import FilterSettings

POLICY = Policy(eager_ms_min=0.0, eager_ms_max=1e6, tensor_time_share_min=0.0)
ROWS = "[torch.randn(64, 256)]"


@pytest.fixture(scope="module")
def inductor():
    with Engine(FilterSettings(device="cpu", workers=2, memory_gib=1.0), POLICY) as running:
        yield running


@pytest.fixture
def verdict(inductor, task):
    def run(expression, inputs=ROWS):
        code = task(
            f"class Model(nn.Module):\n    def forward(self, x):\n        return {expression}\n", inputs
        )
        candidate = Candidate(index=0, name="task", code=code, origin="rules")
        measurement = inductor.measure(candidate)
        return judge(candidate, measurement, POLICY, skip_source_filters=True), measurement

    return run


def test_fused_arithmetic_is_compared_in_double_precision(verdict):
    found, measurement = verdict("torch.logsumexp(x * 50, -1, keepdim=True) * x.exp().sin()")
    assert found.reason is Reason.ACCEPTED, found.evidence
    assert measurement.compared_with == "fp64"
    assert 0 < measurement.eager_error < 1e-5
    assert measurement.graphs == 1


def test_half_precision_inside_a_task(verdict):
    found, measurement = verdict("torch.softmax(x.bfloat16(), -1).mul(x.bfloat16().exp()).float()")
    assert found.reason is Reason.ACCEPTED, found.evidence
    assert measurement.allowed_error > 8e-3


def test_complex_numbers_fall_back_and_are_right(verdict):
    found, _ = verdict("torch.fft.rfft(x) * torch.fft.rfft(x).conj()")
    assert found.reason is Reason.ACCEPTED, found.evidence


def test_results_of_several_kinds_in_strided_tensors(verdict):
    found, _ = verdict("{'sorted': torch.sort(x, -1), 'view': x.cos().t()[::2], 'none': None, 'mask': x > 0}")
    assert found.reason is Reason.ACCEPTED, found.evidence


def test_a_result_that_rounding_decides(verdict):
    found, _ = verdict("torch.linalg.inv(torch.exp(-((x - x.T) ** 2)))", "[torch.randn(24, 1)]")
    assert found.reason in (Reason.ILL_CONDITIONED, Reason.COMPILE_MISMATCH)
