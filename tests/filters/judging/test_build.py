from filters.judging.build import GIB, fixed_inputs, large_inputs, peak_memory, run_time_contract
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Claim

POLICY = Policy(input_gib_max=2.0, peak_memory_gib_max=4.0)


def test_run_time_contract(good):
    assert run_time_contract(good(), POLICY, Claim()) is None
    found = run_time_contract(good(contract_fault="get_inputs() returns dict, no list"), POLICY, Claim())
    assert found.reason is Reason.CONTRACT
    assert found.evidence == {"fault": "get_inputs() returns dict, no list"}


def test_fixed_inputs(good):
    assert fixed_inputs(good(), POLICY, Claim()) is None
    found = fixed_inputs(good(inputs_fixed=True), POLICY, Claim())
    assert found.reason is Reason.FIXED_INPUTS
    assert found.evidence == {"shapes": ((8, 16),)}


def test_inputs_may_be_as_large_as_the_policy_says(good):
    assert large_inputs(good(input_bytes=2 * GIB), POLICY, Claim()) is None
    found = large_inputs(good(input_bytes=2 * GIB + 1), POLICY, Claim())
    assert found.reason is Reason.TOO_MUCH_MEMORY
    assert found.evidence == {"input_bytes": 2 * GIB + 1}


def test_peak_memory_is_given_in_decimal_megabytes(good):
    assert peak_memory(good(peak_memory_mb=4294.9), POLICY, Claim()) is None
    found = peak_memory(good(peak_memory_mb=4295.0), POLICY, Claim())
    assert found.reason is Reason.TOO_MUCH_MEMORY
    assert found.evidence == {"peak_memory_mb": 4295.0}
