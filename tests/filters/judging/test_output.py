from filters.judging.output import empty, finite, plain_tensors
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Claim


def test_plain_tensors(good):
    assert plain_tensors(good(), Policy(), Claim()) is None
    found = plain_tensors(good(unsupported_output="float, str"), Policy(), Claim())
    assert found.reason is Reason.UNSUPPORTED_OUTPUT
    assert found.evidence == {"leaves": "float, str"}


def test_empty(good):
    assert empty(good(output_elements=1), Policy(), Claim()) is None
    found = empty(good(output_elements=0, output_shapes=((0, 4),)), Policy(), Claim())
    assert found.reason is Reason.EMPTY_OUTPUT
    assert found.evidence == {"shapes": ((0, 4),)}


def test_finite(good):
    assert finite(good(), Policy(), Claim()) is None
    found = finite(good(non_finite_values=1), Policy(), Claim())
    assert found.reason is Reason.NON_FINITE
    assert found.evidence == {"values": 1}
