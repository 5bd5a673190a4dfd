import pytest

from filters.judging import FILTERS, first_finding, missing_facts
from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim


def test_a_filter_that_needs_an_unknown_fact_fails_when_it_is_defined():
    with pytest.raises(TypeError, match="no such facts: colour"):
        filter_of(Stage.OUTPUT, "output_elements", "colour")


def test_filters_are_asked_in_the_order_of_the_stages():
    order = list(Stage)
    positions = [order.index(known.stage) for known in FILTERS]
    assert positions == sorted(positions)


def test_good_facts_pass_every_filter_and_nothing_is_missing(good):
    assert first_finding(good(), Policy(), Claim()) is None
    assert missing_facts(good()) == ()


def test_the_earlier_stage_gives_the_reason(good):
    facts = good(ignored_inputs=(0,), side_effects=("started a thread",), eager_ms=0.1)
    stage, found = first_finding(facts, Policy(), Claim())
    assert stage is Stage.CONDUCT
    assert found.reason is Reason.SIDE_EFFECT


def test_one_stage_alone(good):
    facts = good(side_effects=("started a thread",), eager_ms=0.1)
    stage, found = first_finding(facts, Policy(), Claim(), only=Stage.RUNTIME)
    assert stage is Stage.RUNTIME
    assert found.reason is Reason.TOO_FAST


def test_filters_without_facts_are_silent():
    assert first_finding(Measurement(), Policy(), Claim()) is None
    assert "eager_ms" in missing_facts(Measurement())


def test_random_numbers_are_named_before_the_state_that_they_leave(good):
    facts = good(rng_consumed=("cpu",), state_changed=True, repeats_equal=False)
    assert first_finding(facts, Policy(), Claim())[1].reason is Reason.STOCHASTIC
