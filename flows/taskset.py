"""Judging tasks that are already there: `check`, `filter` and `audit`."""

from collections.abc import Sequence
from pathlib import Path

from composer.candidate import Candidate
from data.files import write_verdicts
from filters.engine import Engine
from filters.judging.source import source_finding
from filters.measurement import Measurement
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


def judge_taskset(
    candidates: Sequence[Candidate],
    settings: Settings,
    out: Path,
    *,
    static_only: bool = False,
    skip_source_filters: bool = False,
) -> list[Verdict]:
    """Measure and judge a set and write `out`; what is finished is written even after Ctrl-C."""
    found: dict[str, Measurement] = {}
    try:
        if not static_only:
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
        found[candidate.id] = measurement

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
