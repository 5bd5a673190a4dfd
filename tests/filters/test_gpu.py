"""What only a CUDA device shows: `make test-gpu`."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from composer.candidate import Candidate
from filters.admission import FIRST_BYTES
from filters.engine import Engine
from filters.judge import judge
from filters.policy import Policy
from filters.reasons import Reason
from filters.screening import screened
from filters.settings import FilterSettings
from tests.filters.models import passing_on

pytestmark = pytest.mark.gpu

ANY_TIME = Policy(eager_ms_min=0.0, eager_ms_max=1e4, tensor_time_share_min=0.0)


@pytest.fixture(scope="module")
def engine():
    with Engine(FilterSettings(device="cuda", workers=6), ANY_TIME) as running:
        yield running


@pytest.fixture
def verdicts(engine, task):
    """Judge tasks that run side by side."""

    def run(*tasks):
        candidates = [Candidate(index=k, name=str(k), code=task(*each)) for k, each in enumerate(tasks)]
        with ThreadPoolExecutor(len(tasks)) as pool:
            measurements = list(pool.map(engine.measure, candidates))
        return [
            judge(candidate, screened(candidate, measurement), ANY_TIME)
            for candidate, measurement in zip(candidates, measurements, strict=True)
        ]

    return run


def test_an_access_beyond_a_table_ends_its_own_candidate_and_no_neighbour(verdicts):
    good = (passing_on("torch.logsumexp(x.square(), dim=1) * x.amax(dim=1)"), "[torch.randn(4096, 1024)]")
    bad = (passing_on("self.table(x)", "self.table = nn.Embedding(9, 4)"), "[torch.randint(9, 99, (4096,))]")
    first, middle, last = verdicts(good, bad, good)
    assert middle.reason is Reason.FORWARD_FAILED
    assert "CUDA error" in str(middle.evidence)
    assert first.outcome == last.outcome == "accepted"


def test_a_layer_that_outgrows_its_first_share_gets_a_larger_one(verdicts):
    elements = FIRST_BYTES // 4
    inputs = f"[torch.randn({elements // 4096}, 4096)]"
    (verdict,) = verdicts((passing_on("torch.cumsum(x.square(), dim=1)"), inputs))
    assert verdict.outcome == "accepted", verdict


def test_as_many_large_layers_as_there_are_workers_wait_for_one_another(verdicts):
    tasks = [
        (passing_on(f"torch.{name}(x).cumsum(dim=1)"), "[torch.randn(200_000, 4096)]")
        for name in ("tanh", "sigmoid", "erf", "sin", "atan", "asinh")
    ]
    assert {verdict.outcome for verdict in verdicts(*tasks)} == {"accepted"}
