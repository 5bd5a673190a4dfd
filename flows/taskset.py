"""Judging tasks that are already there: `check`, `filter` and `audit`."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from composer.candidate import Candidate
from data.files import write_verdicts
from data.ledger import Ledger
from filters.engine import Engine
from filters.judge import judge
from filters.judging.source import source_finding
from filters.measurement import Measurement
from filters.static_audit import judge_texts
from filters.verdict import Verdict
from flows.measuring import Measuring, interruptible, stopped_after
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
    candidates: Sequence[Candidate],
    settings: Settings,
    out: Path,
    *,
    skip_source_filters: bool = False,
    deadline_minutes: float | None = None,
) -> list[Verdict]:
    """Measure and judge a set and write `out`; what is finished is written even after Ctrl-C.

    Until all is measured a ledger beside `out` holds every measurement, and the same call goes on from it.
    """
    path = out.with_suffix(".ledger.sqlite")
    found: dict[str, Measurement] = {}
    with Ledger.open(path) as ledger:
        try:
            _measure_into(found, candidates, settings, skip_source_filters, ledger, deadline_minutes)
        finally:
            verdicts = verdicts_of(
                candidates, found, settings.policy, skip_source_filters=skip_source_filters
            )
            write_verdicts(out, candidates, verdicts, found)
    if not any(verdict.outcome == "infrastructure" for verdict in verdicts):
        path.unlink()
    return verdicts


def _is_open(
    candidate: Candidate, found: Mapping[str, Measurement], settings: Settings, skip_source_filters: bool
) -> bool:
    """Tell whether a candidate has yet to be measured, or further than before."""
    known = found.get(candidate.id)
    verdict = judge(candidate, known, settings.policy, skip_source_filters=skip_source_filters)
    return verdict.outcome == "infrastructure"


def _measure_into(
    found: dict[str, Measurement],
    candidates: Sequence[Candidate],
    settings: Settings,
    skip_source_filters: bool,
    ledger: Ledger | None = None,
    deadline_minutes: float | None = None,
) -> None:
    began = time.monotonic()
    # Equal texts are measured once, unless they claim different operators: a wrong claim ends a measurement.
    candidates = list({(each.id, each.requested_ops): each for each in reversed(candidates)}.values())[::-1]
    if not skip_source_filters:
        candidates = [each for each in candidates if source_finding(each.code, settings.policy) is None]
    if not candidates:
        return
    progress = Progress()
    with Engine(settings.filters, settings.policy, unsafe=settings.run.unsafe) as engine:
        key = engine.environment.key + " without source filters" * skip_source_filters
        if ledger:
            found |= ledger.measurements(key)
        left = [each for each in candidates if _is_open(each, found, settings, skip_source_filters)]

        def keep(candidate: Candidate, measurement: Measurement) -> None:
            known = found.get(candidate.id)
            if known is None or len(known.stages_done) <= len(measurement.stages_done):
                found[candidate.id] = measurement
                if ledger:
                    ledger.put(candidate.id, key, measurement)

        measuring = Measuring(
            engine, settings.policy, keep, progress, skip_source_filters=skip_source_filters
        )
        with (
            interruptible(measuring.stop),
            stopped_after(deadline_minutes, began, measuring.stop),
            progress.stage("measuring", len(left)),
        ):
            measuring.measure(left)
