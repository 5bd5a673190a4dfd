"""A ledger is judged as a whole set is, whoever judged its candidates by themselves."""

import sqlite3

import pytest

from data.files import read_verdicts
from data.ledger import Ledger
from flows.judging import judge_ledger
from flows.measured import measured
from flows.pipeline import verdicts_of
from flows.run_folder import RunFolder
from flows.settings import Settings


@pytest.fixture
def ledger(small_run, tmp_path):
    """A copy of the ledger of a run, and the machine that it was measured on."""
    folder = RunFolder(small_run[0])
    (tmp_path / "ledger.sqlite").write_bytes(folder.ledger.read_bytes())
    with Ledger.open(tmp_path / "ledger.sqlite") as opened:
        yield opened, folder.read_environments()


@pytest.mark.parametrize("wanted", [1, 100])
def test_it_gives_the_verdicts_of_the_whole_set(ledger, wanted):
    opened, environments = ledger
    settings = Settings(run={"count": wanted})
    judge_ledger(opened, environments, settings)
    found = measured(opened, environments)
    assert opened.verdicts() == verdicts_of(opened.candidates(), found, settings.policy, wanted=wanted)


def test_another_policy_counts_although_verdicts_were_kept(ledger):
    opened, environments = ledger
    judge_ledger(opened, environments, Settings())
    judge_ledger(opened, environments, Settings(policy={"eager_ms_max": 0.001}))
    assert {verdict.reason for verdict in opened.verdicts()} == {"too_slow"}


def test_what_was_kept_is_used_unless_all_is_to_be_judged_again(ledger):
    opened, environments = ledger
    judge_ledger(opened, environments, Settings())
    known = opened.verdicts()
    connection = sqlite3.connect(opened.path)
    with connection:
        connection.execute("UPDATE judged SET verdict = replace(verdict, ?, ?)", ('"accepted"', '"rejected"'))
        change = ('"reason": "rejected"', '"reason": "syntax"')
        connection.execute("UPDATE judged SET verdict = replace(verdict, ?, ?)", change)
    connection.close()
    judge_ledger(opened, environments, Settings())
    assert {verdict.reason for verdict in opened.verdicts()} == {"syntax"}
    judge_ledger(opened, environments, Settings(), again=True)
    assert opened.verdicts() == known


def test_a_ledger_of_the_layout_before_is_read_and_gets_the_new_table(small_run, tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(RunFolder(small_run[0]).ledger.read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE judged")
        connection.execute("PRAGMA user_version = 2")
    with Ledger.open(path) as opened:
        judge_ledger(opened, RunFolder(small_run[0]).read_environments(), Settings())
        recorded = [row.verdict.id for row in read_verdicts(small_run[0] / "verdicts.parquet")]
        assert [verdict.id for verdict in opened.verdicts()] == recorded
