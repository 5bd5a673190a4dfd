"""Judging tasks that are already there: `check`, `filter` and `audit`."""

from collections.abc import Sequence
from pathlib import Path

from composer.candidate import Candidate
from data.files import write_verdicts
from filters.engine import Engine
from filters.judging.source import source_finding
from filters.measurement import Measurement
from filters.static_audit import judge_texts
from filters.verdict import Verdict
from flows.measuring import Measuring, interruptible
from flows.pipeline import verdicts_of
from flows.progress import Progress
from flows.settings import Settings


def measured(
    candidates: Sequence[Candidate], settings: Settings, *, skip_source_filters: bool = False
) -> dict[str, Measurement]:
    """Run what the source filters let pass and return what was seen, by id."""
    found: dict[str, Measurement] = {}
    _measure_into(found, candidates, settings, skip_source_filters)
    return found


def judge_statically(candidates: Sequence[Candidate], settings: Settings, out: Path) -> list[Verdict]:
    """Judge a set by its text alone and write `out`."""
    progress = Progress()
    with progress.stage("reading", len(candidates)):
        verdicts, found = judge_texts(candidates, settings.policy, progress.advance)
    write_verdicts(out, candidates, verdicts, found)
    return verdicts


def judge_taskset(
    candidates: Sequence[Candidate], settings: Settings, out: Path, *, skip_source_filters: bool = False
) -> list[Verdict]:
    """Measure and judge a set and write `out`; what is finished is written even after Ctrl-C."""
    found: dict[str, Measurement] = {}
    try:
        _measure_into(found, candidates, settings, skip_source_filters)
    finally:
        verdicts = verdicts_of(candidates, found, settings.policy, skip_source_filters=skip_source_filters)
        write_verdicts(out, candidates, verdicts, found)
    return verdicts


def _measure_into(
    found: dict[str, Measurement],
    candidates: Sequence[Candidate],
    settings: Settings,
    skip_source_filters: bool,
) -> None:
    def keep(candidate: Candidate, measurement: Measurement) -> None:
        known = found.get(candidate.id)
        if known is None or len(known.stages_done) <= len(measurement.stages_done):
            found[candidate.id] = measurement

    # Equal texts are measured once, unless they claim different operators: a wrong claim ends a measurement.
    candidates = list({(each.id, each.requested_ops): each for each in reversed(candidates)}.values())[::-1]
    if not skip_source_filters:
        candidates = [each for each in candidates if source_finding(each.code, settings.policy) is None]
    if not candidates:
        return
    progress = Progress()
    with Engine(settings.filters, settings.policy, unsafe=settings.run.unsafe) as engine:
        measuring = Measuring(
            engine, settings.policy, keep, progress, skip_source_filters=skip_source_filters
        )
        with interruptible(measuring.stop), progress.stage("measuring", len(candidates)):
            measuring.measure(candidates)
