"""Whose time it is while one worker times."""

import signal
import time

import pytest

from filters.exclusive import Exclusive


class Listening:
    """Stands for a worker: keeps the signals that it is sent."""

    def __init__(self):
        self.signals = []

    def signal(self, number):
        self.signals.append(number)


@pytest.fixture
def two():
    exclusive = Exclusive()
    children = Listening(), Listening()
    for child in children:
        exclusive.enter(child)
    return exclusive, *children


def test_what_a_worker_does_alone_is_its_own_time_and_not_that_of_the_others(two):
    exclusive, holder, other = two
    exclusive.acquire(holder)
    time.sleep(0.02)
    assert exclusive.stopped_seconds(holder) == 0
    assert exclusive.stopped_seconds(other) >= 0.02
    exclusive.release(holder)
    assert exclusive.stopped_seconds(holder) == pytest.approx(0)
    assert exclusive.stopped_seconds(other) >= 0.02
    assert (holder.signals, other.signals) == ([], [signal.SIGSTOP, signal.SIGCONT])


def test_a_worker_that_comes_later_is_stopped_at_once_and_counts_differences_only(two):
    exclusive, holder, _ = two
    late = Listening()
    exclusive.acquire(holder)
    exclusive.enter(late)
    assert late.signals == [signal.SIGSTOP]
    before = exclusive.stopped_seconds(late)
    time.sleep(0.02)
    exclusive.leave(holder)  # it ended while it was alone
    assert late.signals == [signal.SIGSTOP, signal.SIGCONT]
    assert exclusive.stopped_seconds(late) - before >= 0.02
