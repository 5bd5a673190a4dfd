from filters.judging.conduct import mutated_inputs, side_effects
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Claim


def test_side_effects(good):
    assert side_effects(good(), Policy(), Claim()) is None
    found = side_effects(good(side_effects=("changed the default dtype",)), Policy(), Claim())
    assert found.reason is Reason.SIDE_EFFECT
    assert found.evidence == {"effects": ("changed the default dtype",)}


def test_mutated_inputs(good):
    assert mutated_inputs(good(), Policy(), Claim()) is None
    found = mutated_inputs(good(mutated_inputs=(0, 2)), Policy(), Claim())
    assert found.reason is Reason.MUTATES_INPUT
    assert found.evidence == {"positions": (0, 2)}
