"""Snippets that take too much, in real workers."""

import uuid

from filters.limits import Limits
from filters.reasons import Reason
from tests.filters.confined import MIB, running_with


def test_fork_bomb_is_bounded(any_layer):
    marker = f"9{uuid.uuid4().int % 10**8}"
    measurement = any_layer.run(
        f"""
        import os, subprocess
        while True:
            subprocess.Popen(["sh", "-c", "sleep {marker} & sleep {marker}"], start_new_session=True)
        """,
        Limits(stage_seconds=20, timing_seconds=1, compile_seconds=1, memory_bytes=512 * MIB, tasks=40),
    )
    assert measurement.fault == Reason.SIDE_EFFECT
    assert "processes" in measurement.fault_detail
    assert running_with(marker) == []


def test_memory_of_children_counts(any_layer):
    measurement = any_layer.run(
        """
        import subprocess, sys, time
        grow = "import time; kept = bytearray(b'x') * (400 << 20); time.sleep(60)"
        children = [subprocess.Popen([sys.executable, "-c", grow], start_new_session=True) for _ in range(2)]
        time.sleep(60)
        """
    )
    assert measurement.fault == Reason.TOO_MUCH_MEMORY


def test_memory_of_the_worker_is_limited(confined):
    measurement = confined.run("kept = bytearray(b'x') * (800 << 20)\nwhile True: pass")
    assert measurement.fault == Reason.TOO_MUCH_MEMORY


def test_a_file_cannot_grow_beyond_its_limit(confined):
    told = confined.told(
        """
        try:
            open("large", "w").truncate(600 << 20)
        except OSError as error:
            raise RuntimeError(f"refused: {error}")
        raise RuntimeError("written")
        """
    )
    assert told == "refused: [Errno 27] File too large"


def test_files_are_limited_together(confined):
    limits = Limits(
        stage_seconds=20, timing_seconds=1, compile_seconds=1, memory_bytes=512 * MIB, disk_bytes=32 * MIB
    )
    measurement = confined.run(
        """
        for number in range(99):
            open(str(number), "wb").write(bytes(4 << 20))
        while True:
            pass
        """,
        limits,
    )
    assert measurement.fault == Reason.SIDE_EFFECT
    assert "files" in measurement.fault_detail


def test_a_flood_of_output_ends_at_the_largest_file(confined):
    measurement = confined.run("while True:\n    print('x' * (1 << 20))")
    assert measurement.fault in {Reason.INIT_FAILED, Reason.SIDE_EFFECT}
    assert "File too large" in measurement.fault_detail or "files" in measurement.fault_detail


def test_endless_loop_that_ignores_signals_is_a_timeout(confined):
    measurement = confined.run(
        """
        import signal
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass
        """,
        Limits(stage_seconds=1, timing_seconds=1, compile_seconds=1, memory_bytes=512 * MIB),
    )
    assert measurement.fault == Reason.TIMEOUT
    assert measurement.fault_stage == "build"
