import pytest

from filters.judging.degenerate import (
    ignored_inputs,
    ignored_parameters,
    same_for_every_sample,
    trivial_answer,
)
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Claim


@pytest.mark.parametrize(
    ("passing", "reason"),
    [
        (("zeros", "constant", "other_draw"), Reason.VANISHING_OUTPUT),
        (("constant", "other_draw"), Reason.CONSTANT_OUTPUT),
        (("other_draw",), Reason.CONSTANT_OUTPUT),
        (("input",), Reason.IDENTITY_OUTPUT),
        (("input", "zeros"), Reason.IDENTITY_OUTPUT),
    ],
)
def test_trivial_answers(good, passing, reason):
    found = trivial_answer(good(passing_answers=passing), Policy(), Claim())
    assert found.reason is reason
    assert found.evidence == {"passing_answers": sorted(passing)}


def test_an_output_that_takes_work(good):
    assert trivial_answer(good(), Policy(), Claim()) is None


def test_same_for_every_sample(good):
    found = same_for_every_sample(good(varies_along_batch=False), Policy(), Claim())
    assert found.reason is Reason.CONSTANT_OUTPUT
    assert found.evidence == {"constant_along": "batch"}


@pytest.mark.parametrize("varies", [True, None])
def test_outputs_that_vary_or_have_no_batch(good, varies):
    assert same_for_every_sample(good(varies_along_batch=varies), Policy(), Claim()) is None


def test_ignored_inputs(good):
    assert ignored_inputs(good(), Policy(), Claim()) is None
    found = ignored_inputs(good(ignored_inputs=(1,)), Policy(), Claim())
    assert found.reason is Reason.INPUT_IGNORED
    assert found.evidence == {"positions": (1,)}


def test_a_small_inert_parameter_is_let_pass(good):
    policy = Policy(inert_parameter_share_max=0.01)
    small = good(inert_parameters=("key.bias",), inert_parameter_share=0.0099)
    assert ignored_parameters(small, policy, Claim()) is None
    found = ignored_parameters(
        good(inert_parameters=("extra.weight",), inert_parameter_share=0.01), policy, Claim()
    )
    assert found.reason is Reason.PARAMETER_IGNORED
    assert found.evidence == {"parameters": ("extra.weight",)}
