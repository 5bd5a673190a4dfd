"""Everything of the command that runs no whole run."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace

import pytest

from data.files import read_candidates, read_operators, read_verdicts
from filters.measurement import Measurement
from filters.reasons import Reason

GOOD_TASK = """
import torch
import torch.nn as nn

BATCH, FEATURES = 2048, 1024


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x):
        return torch.tanh(self.norm(x))


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES]
"""
FORBIDDEN_TASK = "import os\n" + GOOD_TASK
ONLY_WHAT_RUNS_NEED = ("prefect", "datasets", "openai")
BLOCKER = f"""
import sys


class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {ONLY_WHAT_RUNS_NEED}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, NotInstalled())
"""


@pytest.fixture
def task(tmp_path):
    def write(code, name="task.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(code)
        return name

    return write


@pytest.fixture
def lean(opweaver, tmp_path_factory):
    """The command in an interpreter whose import system knows none of the packages that runs need."""
    blocking = tmp_path_factory.mktemp("blocking")
    (blocking / "sitecustomize.py").write_text(BLOCKER)
    path = os.pathsep.join([str(blocking), opweaver.environment["PYTHONPATH"]])
    return replace(opweaver, environment=opweaver.environment | {"PYTHONPATH": path})


def assert_one_line(done, code, *parts):
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("opweaver: ")
    for part in parts:
        assert part in line


def test_help_lists_the_commands(opweaver):
    done = opweaver("--help")
    assert done.returncode == 0
    for command in ("run", "crawl", "compose", "filter", "check", "audit", "judge", "doctor"):
        assert f" {command} " in done.stdout


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ((), "give a command"),
        (("make",), "No such command 'make'"),
        (("run", "--rows", 3), "No such option: --rows"),
        (("compose", "--out", "c.parquet"), "Missing option '--count'"),
        (("run", "--count", "many"), "Invalid value for '--count'"),
        (("run", "--count", 0), "an option: `run.count` is 0; input should be greater than 0"),
        (
            ("run", "--engine", "slurm"),
            "an option: `run.engine` is 'slurm'; input should be 'local' or 'ray'",
        ),
        (("run", "--address", "auto"), "--address, --mixed-devices: belong to --engine ray"),
        (("run", "--config", "nowhere.toml"), "nowhere.toml: cannot be read"),
        (("run", "--timings", "nowhere.parquet"), "nowhere.parquet: no such file"),
        (("check", "nowhere/task.py"), "nowhere/task.py: no such file"),
        (("audit", "nowhere", "--out", "v.parquet"), "nowhere: no such file or folder"),
        (("judge", "nowhere"), "nowhere/settings.toml: cannot be read"),
    ],
)
def test_bad_input_is_told_in_one_line(opweaver, options, part):
    assert_one_line(opweaver(*options), 2, part)


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_an_interruption_is_one_also_where_a_library_wraps_it(number):
    program = f"""
import os, signal
from flows import cli

def app(standalone_mode):
    try:
        os.kill(os.getpid(), signal.{number})
        signal.pause()
    except KeyboardInterrupt as error:
        raise ValueError("wrapped") from error

cli.app = app
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert_one_line(done, 130, "interrupted; what was finished is kept")


def test_without_any_source_nothing_is_done(opweaver, tmp_path):
    (tmp_path / "opweaver.toml").write_text('sources = ["tensorflow"]')
    assert_one_line(opweaver("run"), 2, "sources: no operators: source tensorflow: is neither a known source")
    assert not (tmp_path / "runs").exists()
    done = opweaver("crawl", "--out", "o.parquet", "--source", "jax")
    assert_one_line(done, 2, "source jax: is neither a known source")
    assert not (tmp_path / "o.parquet").exists()


def test_crawl_tells_of_a_broken_source_and_adds_up(opweaver, tmp_path):
    (tmp_path / "mine.py").write_text("raise OSError('no licence file')")
    done = opweaver("crawl", "--out", "o.parquet", "--source", "torch", "--source", "mine:Source")
    assert_one_line(done, 0, "source mine:Source: OSError: no licence file")
    operators = read_operators(tmp_path / "o.parquet")
    sums = [line for line in done.stdout.splitlines() if line.startswith("│ sum ")]
    assert [int(line.strip("│ ").split()[-1].replace(",", "")) for line in sums] == [len(operators)] * 3
    assert "catalogue of torch" in done.stdout
    kept = [operator for operator in operators if operator.set_aside is None]
    assert sum(operator.witness is not None for operator in kept) >= 420


def test_a_file_in_the_place_of_the_run_directory_is_told(opweaver, tmp_path):
    (tmp_path / "runs").write_text("")
    assert_one_line(opweaver("run"), 3, "runs/quickstart: cannot be written", "choose another place")


def test_compose_with_the_same_seed_writes_the_same_bytes_for_a_device_elsewhere_too(opweaver, tmp_path):
    assert opweaver("crawl", "--out", "o.parquet").returncode == 0
    assert "torch.nn.Conv2d" in {operator.name for operator in read_operators(tmp_path / "o.parquet")}
    elsewhere = {"OPWEAVER_FILTERS__DEVICE": "cuda", "OPWEAVER_COMPOSER__PROFILE": "cpu"}
    other = replace(opweaver, environment=opweaver.environment | elsewhere)
    for name, command in (("a", opweaver), ("b", other)):
        done = command(
            "compose", "--out", f"{name}.parquet", "--count", 6, "--seed", 3, "--operators", "o.parquet"
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert [candidate.index for candidate in read_candidates(tmp_path / "a.parquet")] == list(range(6))


def test_own_operators_of_a_file_are_used_where_the_settings_name_their_source_and_told_elsewhere(
    opweaver, tmp_path
):
    source = "examples.own_operators.own_operators:OwnOperators"
    crawled = opweaver("crawl", "--out", "o.parquet", "--source", "torch", "--source", source)
    assert crawled.returncode == 0, crawled.stderr
    own = {operator.name for operator in read_operators(tmp_path / "o.parquet") if operator.usage}
    command = ("compose", "--count", 2, "--seed", 1, "--operators", "o.parquet", "--out", "c.parquet")

    without = opweaver(*command)
    assert without.returncode == 0, without.stderr
    (line,) = [line for line in without.stderr.splitlines() if line.startswith("opweaver: ")]
    assert line.startswith("opweaver: left out, because no source in the settings has them: ")
    assert all(name in line for name in own)

    named = replace(
        opweaver, environment=opweaver.environment | {"OPWEAVER_SOURCES": json.dumps(["torch", source])}
    )
    done = named(*command)
    assert "left out" not in done.stderr
    assert read_candidates(tmp_path / "c.parquet")[0].source_path in own


def test_check_accepts_where_prefect_datasets_and_openai_are_not_installed(lean, task):
    done = lean("check", task(GOOD_TASK), "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["verdict"], told["reason"]) == ("accepted", "accepted")
    assert told["ops"] == ["torch.nn.LayerNorm", "torch.tanh"]
    assert told["eager_ms"] > 0


def test_a_run_without_prefect_says_what_to_install(lean):
    assert_one_line(lean("run", "--count", 1), 2, "needs the package prefect", "install it")


def test_check_rejects_with_stage_reason_and_evidence(lean, task):
    done = lean("check", task(FORBIDDEN_TASK))
    assert done.returncode == 1
    assert done.stdout.startswith("rejected: forbidden at stage source")
    assert "os" in done.stdout


def test_what_the_source_rejects_can_be_run_all_the_same(opweaver, task):
    done = opweaver("check", task(FORBIDDEN_TASK), "--skip-source-filters")
    assert done.stdout.startswith("accepted\n"), done.stderr
    for figure in ("eager_ms: ", "compile_ms: ", "input_shapes: [[2048, 1024]]"):
        assert figure in done.stdout


def test_check_takes_one_task(opweaver, tmp_path):
    (tmp_path / "two.jsonl").write_text('{"code": "a"}\n{"code": "b"}\n')
    assert_one_line(opweaver("check", "two.jsonl"), 2, "two.jsonl: holds 2 tasks; use `opweaver audit`")


def test_filter_judges_every_candidate(lean, tmp_path, task):
    task(GOOD_TASK, "set/a_good.py")
    task(GOOD_TASK, "set/b_same.py")
    task(FORBIDDEN_TASK, "set/c_forbidden.py")
    task("def Model(:", "set/d_broken.py")
    done = lean("filter", "set", "--out", "v.parquet")
    assert done.returncode == 0, done.stderr
    reasons = {row.name: row.verdict.reason for row in read_verdicts(tmp_path / "v.parquet")}
    assert reasons == {
        "a_good": Reason.ACCEPTED,
        "b_same": Reason.DUPLICATE,
        "c_forbidden": Reason.FORBIDDEN,
        "d_broken": Reason.SYNTAX,
    }
    assert "4 verdicts: v.parquet" in done.stdout


@pytest.mark.slow
def test_a_killed_audit_goes_on_from_what_it_has_measured(lean, tmp_path, task):
    for number, operator in enumerate(("tanh", "sigmoid", "erf")):
        task(GOOD_TASK.replace("tanh", operator), f"set/{number}.py")
    command = ("audit", "set", "--out", "v.parquet")
    ledger = tmp_path / "v.ledger.sqlite"
    killed = lean.start(*command)
    while not (before := measured(ledger)):
        assert killed.poll() is None
        time.sleep(0.05)
    killed.kill()
    killed.wait()

    stopped = lean(*command, "--deadline", 0)
    line = f"v.parquet: the deadline passed with {len(before)} of 3 judged; run the same command again"
    assert_last_line(stopped, 1, line)
    assert measured(ledger) == before

    done = lean(*command, "--deadline", 60)
    assert done.returncode == 0, done.stderr
    rows = read_verdicts(tmp_path / "v.parquet")
    assert [row.verdict.outcome for row in rows] == ["accepted"] * 3
    after = {row.verdict.id: row.measurement.wall_seconds for row in rows}
    assert before.items() <= after.items()
    assert not ledger.exists()


def measured(path):
    """Return the wall times in a ledger by id, whatever their environment."""
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'measurements'")
        if not tables.fetchone()[0]:
            return {}
        rows = connection.execute("SELECT id, record FROM measurements").fetchall()
    return {id: Measurement.from_json(record).wall_seconds for id, record in rows}


def assert_last_line(done, code, part):
    assert done.returncode == code, done.stderr
    assert part in done.stderr.splitlines()[-1]


def test_a_static_audit_runs_no_task(lean, tmp_path, task):
    task("raise SystemExit('executed')\n" + GOOD_TASK, "set/a.py")
    task("def Model(:", "set/b.py")
    done = lean("audit", "set", "--out", "v.parquet", "--static-only", "--limit", 2)
    assert done.returncode == 0, done.stderr
    assert read_verdicts(tmp_path / "v.parquet")[1].verdict.reason is Reason.SYNTAX


@pytest.mark.slow
def test_doctor_names_what_works(lean):
    done = lean("doctor")
    names = [line.split(":")[0].split()[1] for line in done.stdout.splitlines()]
    assert {"torch", "sandbox", "device", "torch.compile"} <= set(names), done.stderr
    assert done.returncode == (3 if "FAIL" in done.stdout else 0)


def test_the_command_starts_without_the_heavy_packages():
    code = (
        "import sys, flows.cli, flows.summary; print(*{'torch', 'prefect', 'datasets'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
