"""Shares of a device's memory."""

import threading

import pytest

from filters.admission import FIRST_BYTES, GIB, CrowdedError, MemoryBudget

FOR_EVER = 1e9


def start(act):
    """Run something that may have to wait; return its thread once it waits or has ended."""
    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    thread.join(0.2)
    return thread


def budget(*, patience=FOR_EVER):
    """Return a budget of 85 GiB, 12.75 of which are kept from those who build."""
    return MemoryBudget(100 * GIB, patience)


def test_no_share_is_above_what_the_device_has():
    small = MemoryBudget(10 * GIB)
    with small.share() as share:
        assert share.bytes == FIRST_BYTES
        assert share.change(FIRST_BYTES, 100 * GIB) == small.total_bytes == int(8.5 * GIB)
    with small.share(72 * GIB) as share:
        assert share.bytes == small.total_bytes


def test_shares_that_do_not_fit_together_wait_for_one_another():
    device = budget()
    order = []

    def large() -> None:
        with device.share(72 * GIB):
            order.append("large")

    with device.share(24 * GIB):
        waiting = start(large)
        assert waiting.is_alive()
        order.append("small ends")
    waiting.join(5)
    assert order == ["small ends", "large"]


def test_who_waits_holds_only_what_is_in_use():
    device = budget()
    with device.share(50 * GIB) as one, device.share(20 * GIB) as other:
        growing = start(lambda: one.change(10 * GIB, 70 * GIB))
        assert growing.is_alive()
        assert one.bytes == 10 * GIB
        assert other.change(20 * GIB, 55 * GIB) == 55 * GIB
        other.change(0, 1 * GIB)
        growing.join(5)
        assert one.bytes == 70 * GIB


def test_no_share_keeps_more_than_it_had():
    device = budget()
    with device.share(1 * GIB) as share:
        assert share.change(5 * GIB, 2 * GIB) == 2 * GIB


def test_those_who_build_leave_a_part_to_the_others():
    device = budget()
    with device.share(60 * GIB) as share:
        newcomer = start(lambda: device.share(13 * GIB))
        assert newcomer.is_alive()
        assert share.change(60 * GIB, 61 * GIB) == 61 * GIB
        share.change(0, 59 * GIB)
        newcomer.join(5)
        assert not newcomer.is_alive()


@pytest.mark.parametrize(("patience", "first"), [(FOR_EVER, "small"), (0.0, "large")])
def test_a_large_one_is_overtaken_until_it_loses_its_patience(patience, first):
    device = budget(patience=patience)
    order = []

    def ask(name, gib, done):
        with device.share(gib * GIB):
            order.append(name)
            done.wait(5)

    done = threading.Event()
    with device.share(24 * GIB) as running, device.share(1 * GIB):
        large = start(lambda: ask("large", 62, done))
        small = start(lambda: ask("small", 8, done))
        running.change(0, 1 * GIB)
        small.join(0.2)
        assert order[0] == first
        done.set()
    for thread in (large, small):
        thread.join(5)
    assert sorted(order) == ["large", "small"]


def test_who_builds_does_not_hold_up_the_later_stages():
    device = budget(patience=0.0)
    with device.share(60 * GIB) as one, device.share(1 * GIB) as other:
        building = start(lambda: other.change(1 * GIB, 40 * GIB, building=True))
        assert building.is_alive()
        assert one.change(60 * GIB, 70 * GIB) == 70 * GIB
        one.change(0, 1 * GIB)
        building.join(5)
        assert other.bytes == 40 * GIB


def test_the_last_who_would_wait_for_ever_is_told_and_the_others_go_on():
    device = budget()
    with device.share(40 * GIB) as one:
        with device.share(30 * GIB) as other:
            growing = start(lambda: one.change(40 * GIB, 60 * GIB))
            assert growing.is_alive()
            with pytest.raises(CrowdedError) as caught:
                other.change(30 * GIB, 50 * GIB)
            assert caught.value.wanted_bytes == 50 * GIB
        growing.join(5)
        assert one.bytes == 60 * GIB
