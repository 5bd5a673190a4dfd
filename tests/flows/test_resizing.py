"""Which candidates get other sizes, and what becomes of the account and of the rows."""

import dataclasses
import signal
import time

import pyarrow.parquet as pq
import pytest

from composer.candidate import Candidate
from composer.profiles import CPU
from composer.rule_composer import RuleComposer
from data.files import read_candidates, read_timings, read_verdicts, write_verdicts
from data.funnel import adds_up
from data.ledger import Ledger
from filters.measurement import Measurement
from filters.reasons import Reason, Stage
from filters.verdict import Verdict
from flows.resizing import misses
from ops_crawler.crawl import crawl

ACCEPTED, TOO_FAST, TOO_SLOW, FAILED = Reason.ACCEPTED, Reason.TOO_FAST, Reason.TOO_SLOW, Reason.INIT_FAILED


def judged(*reasons, **fields):
    """Return candidates and verdicts with these reasons."""
    candidates = [
        Candidate(index=index, name="", code=f"x = {index}", **{"origin": "rules"} | fields)
        for index, _ in enumerate(reasons)
    ]
    verdicts = [
        Verdict(index=index, id=candidates[index].id, outcome="accepted", reason=reason)
        if reason is ACCEPTED
        else Verdict(
            index=index, id=candidates[index].id, outcome="rejected", reason=reason, stage=Stage.RUNTIME
        )
        for index, reason in enumerate(reasons)
    ]
    return candidates, verdicts


def indices(found):
    return [candidate.index for candidate, _ in found]


def test_only_times_outside_the_window_lead_to_other_sizes():
    assert indices(misses(*judged(TOO_FAST, FAILED, ACCEPTED, TOO_SLOW), wanted=2)) == [0, 3]


def test_what_stands_behind_the_wanted_rows_stays():
    judgement = judged(TOO_FAST, ACCEPTED, TOO_FAST, ACCEPTED, TOO_SLOW)
    assert indices(misses(*judgement, wanted=2)) == [0, 2]
    assert indices(misses(*judgement, wanted=1)) == [0]
    assert indices(misses(*judgement, wanted=3)) == [0, 2, 4]


def test_an_index_gets_two_new_sizings_at_most():
    assert indices(misses(*judged(TOO_FAST, earlier_ids=("a",)), wanted=1)) == [0]
    assert indices(misses(*judged(TOO_FAST, earlier_ids=("a", "b")), wanted=1)) == []


def test_sizes_of_others_are_not_ours_to_change():
    assert indices(misses(*judged(TOO_FAST, origin="foreign"), wanted=1)) == []
    assert indices(misses(*judged(TOO_FAST, origin="lifted"), wanted=1)) == [0]


def rows(run_dir):
    table = pq.read_table(run_dir / "dataset/data/train-00000-of-00001.parquet")
    return table.drop_columns(["compile_seconds", "peak_memory_mb"]).to_pylist()


STEPS_AND_TIMES = ({0: 0.3, 2: 0.7, 4: 2.0}, {0: 150.0, -2: 8.0})
"""For the first indices: the eager time in ms of their sizes after so many steps of the ladder."""


def sizings(seed):
    """Return the candidates of `STEPS_AND_TIMES`, which may be equal where memory allows no step."""
    composer = RuleComposer(crawl(), CPU, seed)
    return [composer.compose(index, steps) for index, times in enumerate(STEPS_AND_TIMES) for steps in times]


@pytest.fixture
def seed():
    """A seed whose first candidates can take all of these steps."""
    return next(seed for seed in range(99) if len({each.id for each in sizings(seed)}) == 5)


@pytest.fixture
def times(tmp_path, seed):
    """A file of recorded times by which the first two candidates miss the window."""
    recorded = [eager_ms for times in STEPS_AND_TIMES for eager_ms in times.values()]
    candidates = [dataclasses.replace(each, index=place) for place, each in enumerate(sizings(seed))]
    measurements = {
        candidate.id: Measurement(eager_ms=eager_ms, eager_ms_iqr=0.0, eager_samples=9, tensor_time_share=0.9)
        for candidate, eager_ms in zip(candidates, recorded, strict=True)
    }
    verdicts = [Verdict(index=c.index, id=c.id, outcome="accepted", reason=ACCEPTED) for c in candidates]
    write_verdicts(tmp_path / "times.parquet", candidates, verdicts, measurements)
    return tmp_path / "times.parquet"


def has_new_sizing(run_dir):
    """Tell whether a candidate has just taken an earlier one's place; it is not measured yet."""
    if not (run_dir / "environment.json").exists():
        return False
    with Ledger.open(run_dir / "ledger.sqlite") as ledger:
        return any(candidate.earlier_ids for candidate in ledger.candidates())


@pytest.mark.slow
def test_a_run_steps_towards_the_window_and_can_be_killed_and_repeated(
    opweaver_run, tmp_path, seed, times
):  # fmt: skip
    command = ("run", "--count", 2, "--seed", seed)
    done = opweaver_run(*command, "--run-dir", "run", "--timings", times)
    assert done.returncode == 0, done.stderr
    candidates = read_candidates(tmp_path / "run/candidates.parquet")
    judged = read_verdicts(tmp_path / "run/verdicts.parquet")
    assert adds_up([candidate.index for candidate in candidates], [row.verdict for row in judged]) is None
    for candidate, row, steps_and_times in zip(candidates, judged, STEPS_AND_TIMES, strict=False):
        *earlier, last = steps_and_times
        assert candidate.ladder_steps == last
        assert len(candidate.earlier_ids) == len(earlier)
        assert row.measurement.eager_ms == steps_and_times[last]
    recorded = read_timings(tmp_path / "run/verdicts.parquet")
    assert [recorded[id]["eager_ms"] for id in candidates[0].earlier_ids] == [0.3, 0.7]

    command = (*command, "--run-dir", "again", "--timings", "run/verdicts.parquet")
    killed = opweaver_run.start(*command)
    while not has_new_sizing(tmp_path / "again"):
        assert killed.poll() is None, killed.communicate()[1]
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    again = opweaver_run(*command)
    assert again.returncode == 0, again.stderr
    assert read_candidates(tmp_path / "again/candidates.parquet") == candidates
    assert rows(tmp_path / "again") == rows(tmp_path / "run")
