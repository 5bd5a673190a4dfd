"""Which candidates get other sizes, and what becomes of the account and of the rows."""

import dataclasses

import pyarrow.parquet as pq

from composer.candidate import Candidate
from composer.profiles import CPU, profile_text
from data.files import read_candidates, read_verdicts
from data.funnel import adds_up
from filters.reasons import Reason, Stage
from filters.verdict import Verdict
from flows.resizing import misses

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
    return [candidate.index for candidate in found]


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


def rows(run_dir):
    table = pq.read_table(run_dir / "dataset/data/train-00000-of-00001.parquet")
    return table.drop_columns(["compile_seconds", "peak_memory_mb"]).to_pylist()


def test_a_run_with_a_wrong_profile_steps_towards_the_window_and_can_be_repeated(opweaver_run, tmp_path):
    slow = dataclasses.replace(
        CPU,
        name="slow",
        copy_bytes_per_second=CPU.copy_bytes_per_second / 5,
        matmul_flops_per_second={"float32": CPU.matmul_flops_per_second["float32"] / 5},
    )
    (tmp_path / "slow.toml").write_text(profile_text(slow))
    opweaver_run.environment["OPWEAVER_COMPOSER__PROFILE"] = "slow.toml"
    done = opweaver_run("run", "--run-dir", "run", "--count", 2)
    assert done.returncode == 0, done.stderr
    candidates = read_candidates(tmp_path / "run/candidates.parquet")
    verdicts = [row.verdict for row in read_verdicts(tmp_path / "run/verdicts.parquet")]
    assert adds_up([candidate.index for candidate in candidates], verdicts) is None
    resized = [candidate for candidate in candidates if candidate.earlier_ids]
    assert resized
    assert all(0 < candidate.ladder_steps <= 4 for candidate in resized)
    assert all(candidate.id not in candidate.earlier_ids for candidate in resized)

    (tmp_path / "slow.toml").unlink()
    again = opweaver_run(
        "run", "--config", "run/settings.toml", "--run-dir", "again", "--timings", "run/verdicts.parquet"
    )
    assert again.returncode == 2, "the variable still names the file"
    del opweaver_run.environment["OPWEAVER_COMPOSER__PROFILE"]
    again = opweaver_run(
        "run", "--config", "run/settings.toml", "--run-dir", "again", "--timings", "run/verdicts.parquet"
    )
    assert again.returncode == 0, again.stderr
    assert read_candidates(tmp_path / "again/candidates.parquet") == candidates
    assert rows(tmp_path / "again") == rows(tmp_path / "run")
