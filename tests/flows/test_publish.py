"""`opweaver publish` and `opweaver export` as their users call them, against a Hub on this machine."""

import json
import shutil
import sqlite3
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from flows.cli import app
from flows.cli_examples import EXAMPLES
from flows.run_folder import RunFolder
from tests.data.local_hub import READER, WRITER, serving


@pytest.fixture
def run(small_run, tmp_path):
    """A copy of a finished run, to publish or to damage."""
    return RunFolder(shutil.copytree(small_run[0], tmp_path / "run"))


@pytest.fixture
def hub():
    with serving() as server:
        yield server


@pytest.fixture
def publish(opweaver, run, hub, tmp_path):
    """Publish the run on the local Hub as its writer, unless another environment is given."""

    def call(*options, **environment):
        known = {
            "HF_ENDPOINT": hub.url, "HF_TOKEN": WRITER, "HF_HOME": str(tmp_path / "home"),
            "HF_HUB_DISABLE_XET": "1",
        }  # fmt: skip
        command = replace(opweaver, environment=opweaver.environment | known | environment)
        return command("publish", "run", "--repo", "you/tasks", *options)

    return call


def change_candidates(run, **fields):
    with sqlite3.connect(run.ledger) as connection:
        for place, record in connection.execute("SELECT place, record FROM candidates").fetchall():
            changed = json.dumps(json.loads(record) | fields, sort_keys=True)
            connection.execute("UPDATE candidates SET record = ? WHERE place = ?", (changed, place))


def assert_refused(done, code, *parts):
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("opweaver: ")
    for part in parts:
        assert part in line


def test_a_dry_run_lists_the_files_and_asks_nobody(publish, hub):
    done = publish("--dry-run", HF_TOKEN="", HF_ENDPOINT="http://127.0.0.1:9")
    assert (done.returncode, done.stderr) == (0, "")
    *files, total = done.stdout.splitlines()
    assert [line.split()[-1] for line in files] == [
        "README.md",
        "data/train-00000-of-00001.parquet",
        "operators/train-00000-of-00001.parquet",
        "rejected/train-00000-of-00001.parquet",
    ]
    assert total.endswith("3 rows: would go to you/tasks, private")
    assert hub.requests == []


def test_a_release_is_pushed_once(publish, hub, run):
    done = publish("--tag", "v0.1")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"published as v0.1, commit {hub.repos['you/tasks'].commits[-1][0][:12]}" in done.stdout
    repo = hub.repos["you/tasks"]
    assert (repo.private, len(repo.commits), list(repo.tags)) == (True, 2, ["v0.1"])
    assert 'load_dataset("you/tasks", split="train")' in repo.files["README.md"].decode()
    assert repo.files["README.md"] == (run.dataset / "README.md").read_bytes()
    again = publish("--tag", "v0.1")
    assert "was there already as v0.1" in again.stdout
    assert len(repo.commits) == 2


def test_a_token_without_the_right_to_write_is_told(publish, hub):
    assert publish().returncode == 0
    hub.repos["you/tasks"].files["data/stale.parquet"] = b""
    assert_refused(publish(HF_TOKEN=READER), 2, "you/tasks: the token may not write there (403")


def test_a_hub_out_of_reach_is_told(publish):
    done = publish(HF_ENDPOINT="http://127.0.0.1:9")
    assert_refused(done, 3, "http://127.0.0.1:9: cannot be reached", "check the network and HF_ENDPOINT")


@pytest.mark.parametrize("endpoint", ["", "hub.example.org", "ftp://hub.example.org", "http://"])
def test_an_endpoint_that_is_no_address_is_told(publish, endpoint):
    assert_refused(publish("--dry-run", HF_ENDPOINT=endpoint), 2, "no address of a Hub; unset it or give one")


def test_a_release_is_read_back_from_the_hub_without_a_word(publish, opweaver, hub, tmp_path):
    assert publish().returncode == 0
    known = {"HF_ENDPOINT": hub.url, "HF_TOKEN": READER, "HF_HOME": str(tmp_path / "other")}
    reader = replace(opweaver, environment=opweaver.environment | known)
    done = reader("report", "you/tasks", "--out", "tasks.html")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("3 rows, ")
    done = reader("export", "you/tasks", "--format", "trl", "--out", "prompts")
    assert (done.returncode, done.stderr) == (0, "")
    done = reader("report", "you/others")
    assert_refused(done, 2, "you/others: neither here nor readable from the Hub", "check the name and the")


def test_without_a_token_nothing_is_written(publish, run):
    before = run.dataset.stat().st_mtime_ns
    assert_refused(publish(HF_TOKEN=""), 2, "no token for the Hub; set HF_TOKEN")
    assert run.dataset.stat().st_mtime_ns == before


def test_rows_of_others_without_a_licence_are_refused(publish, hub, run):
    change_candidates(run, source_path="mine.swish")
    assert_refused(publish(), 1, "run: 3 of 3 rows hold code of others without a licence, such as rules_0_0")
    change_candidates(run, source_license="MIT")
    assert publish("--dry-run").returncode == 0
    assert hub.repos == {}


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DELETE FROM candidates WHERE place = 1", "lacks candidate 1; it is damaged"),
        ("DROP TABLE verdicts", "lacks verdicts; it is damaged"),
        ("UPDATE measurements SET record = '{}{'", "a record is not readable"),
        ("PRAGMA user_version = 99", "written in layout 99, this version reads"),
    ],
)
def test_a_damaged_run_is_told_and_left_as_it_is(publish, run, damage, told):
    with sqlite3.connect(run.ledger) as connection:
        connection.execute(damage)
    before = (run.dataset / "README.md").read_bytes()
    assert_refused(publish("--dry-run"), 3, "run/ledger.sqlite: ", told)
    assert (run.dataset / "README.md").read_bytes() == before


def test_a_run_with_open_candidates_is_refused(publish, run):
    with sqlite3.connect(run.ledger) as connection:
        connection.execute("DELETE FROM measurements WHERE id IN (SELECT id FROM measurements LIMIT 1)")
    assert_refused(
        publish(), 3, "candidates have no verdict yet; finish it with `opweaver run --run-dir run`"
    )


def test_a_run_without_rows_is_refused(publish, run):
    text = run.settings.read_text()
    run.settings.write_text(text.replace("eager_ms_min = 1.0", "eager_ms_min = 99.0"))
    assert_refused(publish("--dry-run"), 1, "run: has no accepted row")


def test_what_is_no_run_or_no_name_is_told(opweaver, run):
    assert_refused(opweaver("publish", "nowhere", "--repo", "you/tasks"), 2, "nowhere/settings.toml")
    done = opweaver("publish", "run", "--repo", "tasks", "--dry-run")
    assert_refused(done, 2, "--repo tasks: not of the form ORG/NAME")


@pytest.mark.parametrize("format", ["kernelbench", "trl", "verl"])
def test_a_run_is_exported(opweaver, run, tmp_path, format):
    done = opweaver("export", "run", "--format", format, "--out", "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"3 tasks for {format}: out\n"
    assert any((tmp_path / "out").rglob("*.py" if format == "kernelbench" else "train.parquet"))


def test_an_unknown_format_and_a_full_folder_are_told(opweaver, run):
    assert_refused(opweaver("export", "run", "--format", "xml", "--out", "out"), 2, "'--format'")
    assert_refused(opweaver("export", "run", "--format", "trl", "--out", "run"), 2, "run: is there already")


def test_every_command_has_an_example_in_its_help():
    def commands(group, *names):
        for name, command in group.commands.items():
            inner = hasattr(command, "commands")
            yield from commands(command, *names, name) if inner else [((*names, name), command)]

    found = dict(commands(typer.main.get_command(app)))
    assert {" ".join(names) for names in found} == EXAMPLES.keys()
    for names, command in found.items():
        shown = CliRunner().invoke(app, [*names, "--help"]).stdout
        assert " ".join(shown.split()).endswith(f"Example: {EXAMPLES[' '.join(names)]}"), names
        assert EXAMPLES[" ".join(names)].startswith(f"opweaver {' '.join(names)}")
        known = {option for parameter in command.params for option in parameter.opts}
        used = [word for word in EXAMPLES[" ".join(names)].split() if word.startswith("--")]
        assert set(used) <= known, "the example uses options that exist"


def test_the_shell_completes_commands_options_and_values():
    for words, wanted in {"rep": "report", "export --form": "--format", "export --format t": "trl"}.items():
        asking = {
            "COMP_WORDS": f"opweaver {words}",
            "COMP_CWORD": str(len(words.split())),
            "_OPWEAVER_COMPLETE": "complete_bash",
        }
        done = CliRunner().invoke(app, [], env=asking, prog_name="opweaver")
        assert done.stdout.split() == [wanted]
