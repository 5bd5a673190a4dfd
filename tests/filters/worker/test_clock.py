import itertools

import torch

from filters.worker.clock import Clock

BOUNDS = (1.0, 100.0)


def samples_until_enough(values, bounds=BOUNDS) -> int:
    taken: list[float] = []
    source = itertools.cycle(values)
    while not Clock._enough(taken, bounds):
        taken.append(next(source))
    return len(taken)


def test_few_samples_far_from_both_bounds():
    assert samples_until_enough([0.2]) == 5
    assert samples_until_enough([300.0]) == 5


def test_more_samples_within_a_tenth_of_a_bound():
    assert samples_until_enough([0.95, 1.05]) == 50
    assert samples_until_enough([95.0]) == samples_until_enough([105.0]) == 15  # more than a second


def test_inside_the_window_enough_time_or_enough_samples():
    assert samples_until_enough([2.0]) == 30
    assert samples_until_enough([50.0]) == 10
    assert samples_until_enough([4.0]) == 15


def test_a_bound_of_zero_is_never_near():
    assert samples_until_enough([0.001], (0.0, 1e6)) == 30


def test_time_reports_the_median_of_calls_after_warm_up():
    calls = []
    timing = Clock(torch.device("cpu")).time(lambda: calls.append(1), (0.0, 1e6))
    assert len(calls) == timing.samples + 3
    assert timing.median_ms >= 0
    assert timing.iqr_ms >= 0
