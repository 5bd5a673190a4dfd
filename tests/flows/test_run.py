"""Whole runs by the real command: what they leave, and how they survive being stopped."""

import contextlib
import json
import random
import signal
import subprocess
import time
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data.files import read_verdicts
from data.funnel import adds_up
from data.ledger import Ledger
from filters.reasons import Reason


def rows(run_dir):
    """Return the rows but for what no recorded time replaces."""
    table = pq.read_table(run_dir / "dataset/data/train-00000-of-00001.parquet")
    return table.drop_columns(["compile_seconds", "peak_memory_mb"]).to_pylist()


def told(stderr):
    """Return the lines that are no progress."""
    return [line for line in stderr.splitlines() if not line.startswith(("measuring:", "composing:"))]


def wait_until(condition, process):
    """Wait for something that the process brings about; fail where it ends before."""
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.1)


def descendants(pid):
    """Return the processes below one, forkservers and their workers among them."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text().split():
            found += [int(child), *descendants(child)]
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_run_prints_where_its_rows_are_the_funnel_and_one_row(small_run):
    run_dir, done = small_run
    assert "3 rows: run/dataset" in done.stdout
    assert "│ accepted │" in done.stdout
    assert rows(run_dir)[0]["code"].strip() in done.stdout


def test_a_good_run_prints_nothing_of_its_libraries(small_run):
    assert told(small_run[1].stderr) == []


def test_the_verdicts_of_a_run_add_up(small_run):
    run_dir, _ = small_run
    with Ledger.open(run_dir / "ledger.sqlite") as ledger:
        planned = [candidate.index for candidate in ledger.candidates()]
    verdicts = [row.verdict for row in read_verdicts(run_dir / "verdicts.parquet")]
    assert adds_up(planned, verdicts) is None
    assert sum(verdict.outcome == "accepted" for verdict in verdicts) == 3


def test_the_settings_as_used_lie_next_to_the_rows(small_run):
    run_dir, _ = small_run
    used = tomllib.loads((run_dir / "settings.toml").read_text())
    assert used["run"]["count"] == 3
    assert used["filters"]["compile_backend"] == "aot_eager"


def test_a_finished_run_does_nothing_and_prints_the_same(small_run, opweaver_run, measured_ids):
    run_dir, done = small_run
    before = measured_ids(run_dir)
    opweaver_run.environment["PREFECT_API_URL"] = "http://127.0.0.1:9/api"  # nobody listens there
    again = opweaver_run("run", "--run-dir", run_dir, "--count", 3)
    assert again.returncode == 0
    assert again.stdout == done.stdout.replace("run/dataset", f"{run_dir}/dataset")
    assert measured_ids(run_dir) == before


def test_another_seed_in_the_same_folder_is_refused(small_run, opweaver_run):
    done = opweaver_run("run", "--run-dir", small_run[0], "--count", 3, "--seed", 5)
    assert done.returncode == 2
    (line,) = told(done.stderr)
    assert "holds a run with other settings: seed (was 0, is 5)" in line


def test_a_prefect_server_that_does_not_answer_is_named(opweaver_run):
    opweaver_run.environment["PREFECT_API_URL"] = "http://127.0.0.1:9/api"
    done = opweaver_run("run", "--run-dir", "run")
    assert done.returncode == 3
    (line,) = told(done.stderr)
    assert line.startswith("opweaver: http://127.0.0.1:9/api: no usable Prefect server")


def test_two_runs_in_one_folder_are_kept_apart(opweaver_run, tmp_path):
    first = opweaver_run.start("run", "--run-dir", "run", "--count", 300)
    wait_until((tmp_path / "run/ledger.sqlite").exists, first)
    second = opweaver_run("run", "--run-dir", "run", "--count", 300)
    first.terminate()
    _, stderr = first.communicate()
    assert first.returncode == 130, stderr
    assert second.returncode == 3
    assert "run: another opweaver is at work here" in second.stderr


def test_killed_interrupted_and_started_again_ends_with_the_undisturbed_rows(
    small_run, opweaver_run, tmp_path, measured_ids
):
    recorded, _ = small_run
    run_dir = tmp_path / "run"
    command = ("run", "--run-dir", "run", "--count", 3, "--timings", recorded / "verdicts.parquet")

    killed = opweaver_run.start(*command)
    wait_until(lambda: len(measured_ids(run_dir)) >= 1, killed)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    after_kill = measured_ids(run_dir)

    interrupted = opweaver_run.start(*command)
    wait_until(lambda: len(measured_ids(run_dir)) > len(after_kill), interrupted)
    workers = descendants(interrupted.pid)
    interrupted.send_signal(signal.SIGINT)
    _, stderr = interrupted.communicate()
    after_interrupt = measured_ids(run_dir)
    assert interrupted.returncode == 130
    assert told(stderr) == [
        "opweaver: interrupted; what was finished is kept, run the same command again to go on"
    ]
    assert workers
    assert not any(map(is_alive, workers))

    finished = opweaver_run(*command)
    assert finished.returncode == 0, finished.stderr
    assert rows(run_dir) == rows(recorded)
    at_the_end = measured_ids(run_dir)
    assert after_kill.items() <= after_interrupt.items() <= at_the_end.items()


@pytest.mark.slow
def test_killed_at_five_random_moments_ends_with_the_undisturbed_rows(
    small_run, opweaver_run, tmp_path, measured_ids
):
    recorded, _ = small_run
    run_dir = tmp_path / "run"
    command = ("run", "--run-dir", "run", "--count", 3, "--timings", recorded / "verdicts.parquet")
    began = time.monotonic()
    undisturbed = opweaver_run("run", "--run-dir", "other", *command[3:])
    seconds = time.monotonic() - began
    assert undisturbed.returncode == 0
    kept = {}
    for _ in range(5):
        process = opweaver_run.start(*command)
        try:
            process.wait(random.uniform(0, seconds))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        process.communicate()
        now = measured_ids(run_dir)
        assert kept.items() <= now.items()
        kept = now
    assert opweaver_run(*command).returncode == 0
    assert rows(run_dir) == rows(tmp_path / "other") == rows(recorded)
    assert kept.items() <= measured_ids(run_dir).items()


def test_a_deadline_ends_a_run_cleanly_and_says_how_to_go_on(opweaver_run, tmp_path):
    done = opweaver_run("run", "--run-dir", "run", "--count", 3, "--deadline", 0.001)
    assert done.returncode == 1, done.stderr
    assert told(done.stderr) == [
        "opweaver: run: the deadline passed with 0 of 3 rows; run the same command again to go on"
    ]
    assert (tmp_path / "run/dataset/README.md").exists()


def test_a_hopeless_run_gives_up_and_writes_what_it_knows(opweaver_run, tmp_path, monkeypatch):
    opweaver_run.environment["OPWEAVER_POLICY__SOURCE_KIB_MAX"] = "0"
    done = opweaver_run("run", "--run-dir", "run", "--count", 40)
    assert done.returncode == 1
    (line,) = told(done.stderr)
    assert "run: gave up, 0 of 45 candidates were accepted" in line
    reasons = {row.verdict.reason for row in read_verdicts(tmp_path / "run/verdicts.parquet")}
    assert reasons == {Reason.TOO_LARGE}


def test_judging_again_follows_the_policy_in_the_settings_file(small_run, opweaver, tmp_path):
    run_dir = tmp_path / "copy"
    subprocess.run(["cp", "-r", small_run[0], run_dir], check=True)
    settings = run_dir / "settings.toml"
    settings.write_text(settings.read_text().replace("eager_ms_max = 100.0", "eager_ms_max = 0.001"))
    done = opweaver("judge", "copy")
    assert done.returncode == 0, done.stderr
    reasons = {row.verdict.reason for row in read_verdicts(run_dir / "verdicts.parquet")}
    assert reasons == {Reason.TOO_SLOW}


def test_a_full_disk_is_told_and_nothing_is_lost(small_disk, opweaver_run):
    (small_disk / "filler").write_bytes(bytes(200_000))
    done = opweaver_run("run", "--run-dir", small_disk / "run", "--count", 3)
    assert done.returncode == 3
    (line,) = told(done.stderr)
    assert "the disk is full" in line


@pytest.mark.slow
def test_a_disk_that_fills_up_ends_the_run_and_loses_nothing(small_disk, opweaver_run, measured_ids):
    subprocess.run(["mount", "-o", "remount,size=2m", small_disk], check=True)
    run_dir = small_disk / "run"
    command = ("run", "--run-dir", run_dir, "--count", 3)
    process = opweaver_run.start(*command)
    wait_until(lambda: len(measured_ids(run_dir)) >= 1, process)
    with (small_disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))
    _, stderr = process.communicate()
    assert process.returncode == 3
    (line,) = told(stderr)
    assert "the disk is full" in line
    kept = measured_ids(run_dir)
    (small_disk / "filler").unlink()
    finished = opweaver_run(*command)
    assert finished.returncode == 0, finished.stderr
    assert kept.items() <= measured_ids(run_dir).items()


@pytest.mark.slow
def test_lifted_layers_become_rows_that_say_where_they_are_from(opweaver_run, tmp_path):
    layers_alone = {
        "OPWEAVER_SOURCES": '["torch", "transformers"]',
        "OPWEAVER_COMPOSER__LAYERS_SHARE": "1",
        "OPWEAVER_POLICY__EAGER_MS_MIN": "0.01",
        "OPWEAVER_POLICY__EAGER_MS_MAX": "10000",
    }
    opweaver_run.environment.update(layers_alone)
    done = opweaver_run("run", "--run-dir", "run", "--count", 2)
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "run/dataset/data/train-00000-of-00001.parquet").to_pylist()
    assert len(rows) == 2
    for row in rows:
        assert (row["data_source"], row["composer"], row["source_license"]) == (
            "transformers", "layers", "Apache-2.0",
        )  # fmt: skip
        (name,) = json.loads(row["ops"])
        assert row["code"].startswith(f"# {name} of Hugging Face transformers ")
        assert row["source_path"].startswith("src/transformers/models/")
        assert "Licensed under the Apache License, Version 2.0" in row["code"]
    card = (tmp_path / "run/dataset/README.md").read_text()
    assert "Rows of `transformers` are layers of the library transformers, which is under Apache-2.0" in card
