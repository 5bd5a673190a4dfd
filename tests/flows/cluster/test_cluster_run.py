"""Runs by the real command on a real Ray cluster: the same rows, and nothing lost that was finished."""

import json
import os
import signal

import pytest

from data.files import read_verdicts
from filters.reasons import Reason


def on_cluster(nodes, recorded, count):
    return (
        "run", "--run-dir", "run", "--count", count, "--timings", recorded / "verdicts.parquet",
        "--engine", "ray", "--address", nodes.address,
    )  # fmt: skip


def told(stderr):
    """Return the lines that are no progress."""
    return [line for line in stderr.splitlines() if not line.startswith(("measuring:", "composing:"))]


def test_two_nodes_make_the_rows_of_one_machine(small_run, nodes, opweaver_run, tmp_path, rows):
    nodes.add()
    done = opweaver_run(*on_cluster(nodes, small_run[0], 3))
    assert done.returncode == 0, done.stderr
    assert told(done.stderr) == []
    assert rows(tmp_path / "run") == rows(small_run[0])


@pytest.mark.slow
def test_two_nodes_make_the_same_24_rows(long_run, nodes, opweaver_run, tmp_path, rows):
    nodes.add()
    done = opweaver_run(*on_cluster(nodes, long_run, 24))
    assert done.returncode == 0, done.stderr
    assert len(rows(long_run)) == 24
    assert rows(tmp_path / "run") == rows(long_run)


@pytest.mark.slow
def test_a_node_killed_half_way_loses_nothing_and_repeats_nothing(
    long_run, nodes, opweaver_run, tmp_path, rows, wait_until, measured_ids
):
    other = nodes.add()
    process = opweaver_run.start(*on_cluster(nodes, long_run, 24))
    wait_until(lambda: len(measured_ids(tmp_path / "run")) >= 8, process)
    nodes.kill(other)
    kept = measured_ids(tmp_path / "run")
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    (line,) = told(stderr)
    assert line.startswith("opweaver: a shard was lost, ")
    assert rows(tmp_path / "run") == rows(long_run)
    assert kept.items() <= measured_ids(tmp_path / "run").items()


@pytest.mark.slow
def test_a_driver_killed_and_started_again_goes_on(
    long_run, nodes, opweaver_run, tmp_path, rows, wait_until, measured_ids
):
    nodes.add()
    command = on_cluster(nodes, long_run, 24)
    killed = opweaver_run.start(*command)
    wait_until(lambda: len(measured_ids(tmp_path / "run")) >= 6, killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    after_kill = measured_ids(tmp_path / "run")

    interrupted = opweaver_run.start(*command)
    wait_until(lambda: len(measured_ids(tmp_path / "run")) > len(after_kill), interrupted)
    interrupted.send_signal(signal.SIGINT)
    _, stderr = interrupted.communicate()
    assert interrupted.returncode == 130
    assert told(stderr) == [
        "opweaver: interrupted; what was finished is kept, run the same command again to go on"
    ]
    after_interrupt = measured_ids(tmp_path / "run")

    finished = opweaver_run(*command)
    assert finished.returncode == 0, finished.stderr
    assert rows(tmp_path / "run") == rows(long_run)
    assert after_kill.items() <= after_interrupt.items() <= measured_ids(tmp_path / "run").items()


@pytest.mark.slow
def test_a_deadline_ends_all_shards_and_the_next_start_goes_on(
    long_run, nodes, opweaver_run, tmp_path, rows, measured_ids
):
    nodes.add()
    command = on_cluster(nodes, long_run, 24)
    stopped = opweaver_run(*command, "--deadline", 0.7)
    assert stopped.returncode == 1, stopped.stderr
    (line,) = told(stopped.stderr)
    assert "the deadline passed with" in line
    kept = measured_ids(tmp_path / "run")
    finished = opweaver_run(*command)
    assert finished.returncode == 0, finished.stderr
    assert rows(tmp_path / "run") == rows(long_run)
    assert kept.items() <= measured_ids(tmp_path / "run").items()


@pytest.mark.slow
def test_a_shard_that_is_lost_twice_is_set_aside_and_its_rows_are_tried_by_the_next_start(
    small_run, nodes, opweaver_run, tmp_path, rows, wait_until
):
    command = on_cluster(nodes, small_run[0], 3)
    process = opweaver_run.start(*command)
    wait_until((tmp_path / "run/environment.json").exists, process)
    wait_until(nodes.kill_a_shard, process)
    wait_until(nodes.kill_a_shard, process)
    _, stderr = process.communicate()
    assert process.returncode == 3, stderr
    *lost, last = told(stderr)
    assert len(lost) == 2
    assert all(line.startswith("opweaver: a shard was lost, ") for line in lost)
    assert "candidates have no verdict (worker_lost); run the same command again to finish them" in last
    verdicts = [row.verdict for row in read_verdicts(tmp_path / "run/verdicts.parquet")]
    aside = [verdict for verdict in verdicts if verdict.outcome == "infrastructure"]
    assert {(verdict.reason, verdict.evidence["detail"]) for verdict in aside} == {
        (Reason.WORKER_LOST, "its shard was lost 2 times")
    }
    assert sum(verdict.outcome == "accepted" for verdict in verdicts) == 3

    finished = opweaver_run(*command)
    assert finished.returncode == 0, finished.stderr
    assert rows(tmp_path / "run") == rows(small_run[0])


@pytest.fixture
def one_core():
    """Let what is started from now on see one core: an engine there is another environment."""
    before = os.sched_getaffinity(0)
    if len(before) != 2:
        pytest.skip("needs a machine of two cores, to make two kinds of nodes of it")

    def keep() -> None:
        os.sched_setaffinity(0, {min(before)})

    yield keep
    os.sched_setaffinity(0, before)


@pytest.mark.slow
def test_nodes_of_two_kinds_are_refused(small_run, nodes, one_core, opweaver_run):
    one_core()
    nodes.add()
    refused = opweaver_run(*on_cluster(nodes, small_run[0], 3))
    assert refused.returncode == 2, refused.stderr
    (line,) = told(refused.stderr)
    assert line.startswith("opweaver: run: one run holds rows of one device, but node ")
    assert "threads" in line
    assert line.endswith("or give --mixed-devices")


@pytest.mark.slow
def test_nodes_of_two_kinds_may_be_mixed(small_run, nodes, one_core, opweaver_run, tmp_path, rows):
    one_core()
    nodes.add()
    mixed = opweaver_run(*on_cluster(nodes, small_run[0], 3), "--mixed-devices")
    assert mixed.returncode == 0, mixed.stderr
    environments = json.loads((tmp_path / "run/environment.json").read_text())
    assert {environment["threads"] for environment in environments} == {1, 2}
    found, alone = rows(tmp_path / "run"), rows(small_run[0])
    devices = {environment["device_name"] for environment in environments}
    assert {row.pop("device_name") for row in found} <= devices
    assert {row.pop("device_name") for row in alone} < devices
    assert found == alone
    again = opweaver_run(*on_cluster(nodes, small_run[0], 4))
    assert again.returncode == 2
    assert "holds rows of several devices; give --mixed-devices" in again.stderr


def test_an_address_where_no_cluster_answers_is_named(opweaver_run):
    done = opweaver_run("run", "--engine", "ray", "--address", "127.0.0.1:9")
    assert done.returncode == 3
    (line,) = told(done.stderr)
    assert line.startswith("opweaver: Ray at 127.0.0.1:9: no cluster answers")
    assert "ray start --head" in line


@pytest.mark.parametrize("address", ["ray://127.0.0.1:10001", "somewhere", "host:port"])
def test_an_address_of_another_form_is_refused(opweaver_run, address):
    done = opweaver_run("run", "--engine", "ray", "--address", address)
    assert done.returncode == 2
    (line,) = told(done.stderr)
    assert "should be HOST:PORT of the head node" in line


def test_a_gpu_is_not_asked_of_a_cluster_that_has_none(nodes, opweaver_run):
    done = opweaver_run("run", "--engine", "ray", "--address", nodes.address, "--device", "cuda")
    assert done.returncode == 2
    (line,) = told(done.stderr)
    assert "the Ray cluster has no GPU" in line
