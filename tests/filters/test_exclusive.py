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


def test_who_does_not_use_what_is_timed_goes_on_and_its_time_is_its_own(two):
    exclusive, holder, other = two
    exclusive.exempt(other)
    exclusive.acquire(holder)
    time.sleep(0.02)
    assert other.signals == []
    assert exclusive.stopped_seconds(other) == pytest.approx(0, abs=1e-6)
    exclusive.include(other)
    assert other.signals == [signal.SIGSTOP]
    exclusive.release(holder)
    assert other.signals == [signal.SIGSTOP, signal.SIGCONT]


def test_who_stops_using_it_meanwhile_goes_on_at_once(two):
    exclusive, holder, other = two
    exclusive.acquire(holder)
    exclusive.exempt(other)
    assert other.signals == [signal.SIGSTOP, signal.SIGCONT]
    exclusive.release(holder)
    assert exclusive.stopped_seconds(other) == pytest.approx(0, abs=1e-6)
    assert other.signals == [signal.SIGSTOP, signal.SIGCONT]


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
