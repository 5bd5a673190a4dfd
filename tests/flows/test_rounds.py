from flows.rounds import FIRST_ROUND_MAX, is_hopeless, round_size


def test_the_first_round_expects_nine_of_ten_to_be_accepted():
    assert round_size(wanted=18, accepted=0, judged=0) == 20


def test_later_rounds_follow_the_accept_share_so_far():
    assert round_size(wanted=24, accepted=11, judged=30) == 26


def test_nothing_is_planned_once_enough_are_accepted():
    assert round_size(wanted=24, accepted=24, judged=30) == 0
    assert round_size(wanted=24, accepted=26, judged=30) == 0


def test_a_round_is_no_larger_than_all_before_it():
    assert round_size(wanted=6000, accepted=0, judged=0) == FIRST_ROUND_MAX
    assert round_size(wanted=6000, accepted=300, judged=512) == 512


def test_a_run_without_acceptances_is_given_up():
    assert not is_hopeless(accepted=0, judged=40)
    assert is_hopeless(accepted=0, judged=41)
    assert round_size(wanted=24, accepted=0, judged=41) == 0


def test_a_small_but_sufficient_share_is_not_given_up():
    assert not is_hopeless(accepted=30, judged=1000)
    assert is_hopeless(accepted=20, judged=1000)
