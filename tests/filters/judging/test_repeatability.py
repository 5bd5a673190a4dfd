from filters.judging.repeatability import (
    random_forward,
    repeated_scatter,
    state_between_calls,
    unequal_process,
    unequal_repeats,
)
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Claim


def test_a_forward_that_draws_is_stochastic_even_if_nobody_sees_the_numbers(good):
    assert random_forward(good(), Policy(), Claim()) is None
    found = random_forward(good(rng_consumed=("cpu",)), Policy(), Claim())
    assert found.reason is Reason.STOCHASTIC
    assert found.evidence == {"generators": ("cpu",), "seed_changes_output": False}


def test_state_between_calls(good):
    assert state_between_calls(good(), Policy(), Claim()) is None
    assert state_between_calls(good(state_changed=True), Policy(), Claim()).reason is Reason.STATEFUL


def test_a_difference_between_train_and_eval_mode_is_no_reason(good):
    assert state_between_calls(good(train_eval_same=False), Policy(), Claim()) is None


def test_repeated_scatter(good):
    assert repeated_scatter(good(), Policy(), Claim()) is None
    found = repeated_scatter(good(repeated_scatter_targets="scatter.src"), Policy(), Claim())
    assert found.reason is Reason.NONDETERMINISTIC
    assert found.evidence == {"operator": "scatter.src"}


def test_unequal_repeats(good):
    assert unequal_repeats(good(), Policy(), Claim()) is None
    assert unequal_repeats(good(repeats_equal=False), Policy(), Claim()).reason is Reason.NONDETERMINISTIC
    found = unequal_repeats(good(seed_changes_output=True), Policy(), Claim())
    assert found.reason is Reason.NONDETERMINISTIC
    assert found.evidence == {"where": "repeats in one process"}


def test_unequal_process(good):
    assert unequal_process(good(), Policy(), Claim()) is None
    found = unequal_process(good(fresh_process_equal=False), Policy(), Claim())
    assert found.reason is Reason.NONDETERMINISTIC
    assert found.evidence == {"where": "a process with another hash seed"}
