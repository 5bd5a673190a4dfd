from filters.judging.runtime import padded, too_fast, too_slow
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Claim

POLICY = Policy(eager_ms_min=1.0, eager_ms_max=100.0, tensor_time_share_min=0.5)


def test_bounds_of_the_window_are_inside(good):
    for eager_ms in (1.0, 100.0):
        facts = good(eager_ms=eager_ms)
        assert too_fast(facts, POLICY, Claim()) is None
        assert too_slow(facts, POLICY, Claim()) is None


def test_too_fast(good):
    found = too_fast(good(eager_ms=0.999), POLICY, Claim())
    assert found.reason is Reason.TOO_FAST
    assert found.evidence == {"eager_ms": 0.999, "at_least": 1.0}


def test_too_slow(good):
    found = too_slow(good(eager_ms=100.1), POLICY, Claim())
    assert found.reason is Reason.TOO_SLOW
    assert found.evidence == {"eager_ms": 100.1, "at_most": 100.0}


def test_padded(good):
    assert padded(good(tensor_time_share=0.5), POLICY, Claim()) is None
    found = padded(good(tensor_time_share=0.49), POLICY, Claim())
    assert found.reason is Reason.PADDED
    assert found.evidence == {"tensor_time_share": 0.49, "eager_ms": 5.0}
