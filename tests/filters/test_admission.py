"""Shares of a device's memory."""

import threading

import pytest

from filters.admission import GIB, CrowdedError, MemoryBudget


def start(act):
    """Run something that may have to wait; return its thread once it waits or has ended."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(0.2)
    return thread


def test_no_share_is_above_what_the_device_has():
    budget = MemoryBudget(10 * GIB)
    with budget.share(72 * GIB) as share:
        assert share.bytes == budget.total_bytes == int(8.5 * GIB)
        assert share.change(100 * GIB) == budget.total_bytes


def test_shares_that_do_not_fit_together_wait_for_one_another():
    budget = MemoryBudget(100 * GIB)  # 85 usable
    order = []

    def large() -> None:
        with budget.share(72 * GIB):
            order.append("large")

    with budget.share(24 * GIB):
        waiting = start(large)
        assert waiting.is_alive()
        order.append("small ends")
    waiting.join(5)
    assert order == ["small ends", "large"]


def test_no_newcomer_overtakes_a_large_one():
    budget = MemoryBudget(100 * GIB)
    order = []

    def ask(name: str, gib: int) -> None:
        with budget.share(gib * GIB):
            order.append(name)

    with budget.share(24 * GIB):
        large = start(lambda: ask("large", 72))
        small = start(lambda: ask("small", 8))
        assert order == []
    for thread in (large, small):
        thread.join(5)
    assert order == ["large", "small"]


def test_newcomers_leave_a_third_to_those_at_work():
    budget = MemoryBudget(100 * GIB)
    with budget.share(50 * GIB) as share:
        newcomer = start(lambda: budget.share(10 * GIB))
        assert newcomer.is_alive()
        share.change(40 * GIB)
        newcomer.join(5)
        assert not newcomer.is_alive()


def test_a_share_that_shrinks_makes_room_for_one_that_grows_and_newcomers_stand_back():
    budget = MemoryBudget(100 * GIB)
    order = []

    def newcomer() -> None:
        with budget.share(1 * GIB):
            order.append("newcomer")

    with budget.share(25 * GIB) as one, budget.share(25 * GIB) as other:
        one.change(40 * GIB)
        other.change(40 * GIB)

        def grow() -> None:
            one.change(60 * GIB)
            order.append("grown")

        growing = start(grow)
        late = start(newcomer)
        assert order == []
        other.change(20 * GIB)
        growing.join(5)
        assert order == ["grown"]
    late.join(5)
    assert order == ["grown", "newcomer"]


def test_who_would_wait_for_ever_is_told_and_the_others_go_on():
    budget = MemoryBudget(100 * GIB)
    with budget.share(25 * GIB) as one:
        one.change(40 * GIB)
        with budget.share(15 * GIB) as other:
            other.change(40 * GIB)
            growing = start(lambda: one.change(60 * GIB))
            with pytest.raises(CrowdedError) as caught:
                other.change(50 * GIB)
            assert caught.value.wanted_bytes == 50 * GIB
        growing.join(5)
        assert one.bytes == 60 * GIB


def test_a_further_try_never_falls_below_its_least():
    budget = MemoryBudget(100 * GIB)
    with budget.share(3 * GIB, least_bytes=10 * GIB) as share:
        assert share.bytes == 10 * GIB
        assert share.change(20 * GIB) == 20 * GIB
        assert share.change(1 * GIB) == 10 * GIB
