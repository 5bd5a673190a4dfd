"""The temporary server is quiet, leaves nothing behind and dies with its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOW = """
import sys, time
from flows.prefect_server import PrefectServer

with PrefectServer().api():
    from prefect import flow, task
    from prefect.settings import PREFECT_API_URL

    @task
    def shard(number):
        return number

    @flow
    def measure():
        return [future.result() for future in [shard.submit(number) for number in range(8)]]

    @flow
    def synthesize():
        return sum(measure())

    print(synthesize(), PREFECT_API_URL.value(), flush=True)
    if "--wait" in sys.argv:
        time.sleep(600)
"""


@pytest.fixture
def environment(tmp_path):
    """A user who never used Prefect."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return kept | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "DO_NOT_TRACK": "0"}


def start(environment, *options):
    return subprocess.Popen(
        [sys.executable, "-c", FLOW, *options],
        env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_first_start_with_an_empty_home_prints_nothing_and_leaves_nothing(environment, tmp_path):
    process = start(environment)
    stdout, stderr = process.communicate()
    assert (process.returncode, stderr) == (0, "")
    assert stdout.startswith("28 http://127.0.0.1:")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_the_users_own_server_goes_first(environment, prefect_url):
    stdout, _ = start(environment | {"PREFECT_API_URL": prefect_url}).communicate()
    assert stdout.split() == ["28", prefect_url]


def test_the_server_dies_with_a_killed_parent(environment):
    process = start(environment, "--wait")
    port = process.stdout.readline().strip().removesuffix("/api").rpartition(":")[2]
    assert servers_on(port)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for _ in range(50):
        if not servers_on(port):
            return
        time.sleep(0.1)
    pytest.fail("the server is still there")


def servers_on(port):
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = entry.read_bytes().split(b"\0")
        except OSError:
            continue  # it has just ended
        if b"prefect" in arguments and port.encode() in arguments:
            found.append(entry.parent.name)
    return found
