"""Shares of a device's memory."""

import threading

from filters.admission import CAPS_BYTES, GIB, MemoryBudget


def test_no_cap_is_above_what_the_device_has():
    budget = MemoryBudget(24 * GIB)
    assert budget.caps() == [8 * GIB, budget.total_bytes]
    assert MemoryBudget(141 * GIB).caps() == list(CAPS_BYTES)


def test_shares_that_do_not_fit_together_wait_for_one_another():
    budget = MemoryBudget(100 * GIB)  # 85 usable
    order = []

    def large() -> None:
        with budget.reserve(72 * GIB):
            order.append("large")

    with budget.reserve(24 * GIB):
        waiting = threading.Thread(target=large)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        order.append("small ends")
    waiting.join(5)
    assert order == ["small ends", "large"]


def test_nobody_overtakes_a_large_request():
    budget = MemoryBudget(100 * GIB)
    order = []

    def ask(name: str, gib: int) -> None:
        with budget.reserve(gib * GIB):
            order.append(name)

    with budget.reserve(24 * GIB):
        large = threading.Thread(target=ask, args=("large", 72))
        large.start()
        large.join(0.2)
        small = threading.Thread(target=ask, args=("small", 8))
        small.start()
        small.join(0.2)
        assert order == []
    for thread in (large, small):
        thread.join(5)
    assert order == ["large", "small"]
