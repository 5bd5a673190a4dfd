"""The Parquet files of a run: `operators.parquet`, `candidates.parquet`, `verdicts.parquet`.

Writers replace a file whole or not at all and raise StorageError; readers raise InputError.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from composer.candidate import Candidate
from data.errors import InputError
from data.schema import CANDIDATE, MEASUREMENT, OPERATOR, VERDICT, EarlierSizing, columns_of
from data.tables import read_rows, table_of, write_table
from filters.measurement import Measurement, checked_facts
from filters.reasons import Reason, Stage
from filters.verdict import Verdict
from ops_crawler.operator import Operator, operator_from

TIMES = (
    "eager_ms", "eager_ms_iqr", "eager_samples", "tensor_time_share",
    "compile_ms", "compile_ms_iqr", "compile_samples", "compile_seconds",
)  # fmt: skip
"""Facts of a measurement that differ from run to run."""


def write_operators(path: Path, operators: Iterable[Operator]) -> None:
    """Write the catalogue."""
    write_table(path, table_of([dataclasses.asdict(operator) for operator in operators], OPERATOR))


def read_operators(path: Path) -> list[Operator]:
    """Read a catalogue in its order."""
    return [operator_from(row) for row in read_rows(path, OPERATOR)]


def write_candidates(path: Path, candidates: Iterable[Candidate]) -> None:
    """Write candidates; lone surrogates in a text become their escapes, which leaves its id as it is."""
    write_table(path, table_of([dataclasses.asdict(candidate) for candidate in candidates], CANDIDATE))


def read_candidates(path: Path) -> list[Candidate]:
    """Read `candidates.parquet`.

    Whatever the file claims, the candidates are foreign: where they come from decides whether they may run
    outside a sandbox, and anybody can write a file.
    """
    candidates = [
        Candidate(
            **row
            | {
                "requested_ops": tuple(row["requested_ops"] or ()),
                "earlier_ids": tuple(row["earlier_ids"] or ()),
                "origin": "foreign",
            }
        )
        for row in read_rows(path, CANDIDATE)
    ]
    if len({candidate.index for candidate in candidates}) < len(candidates):
        raise InputError(f"{path}: the same index stands in two rows; write the file again")
    return candidates


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One row of `verdicts.parquet`."""

    name: str
    verdict: Verdict
    measurement: Measurement
    """Without any fact where nothing was measured."""


def write_verdicts(
    path: Path,
    candidates: Iterable[Candidate],
    verdicts: Iterable[Verdict],
    measurements: Mapping[str, Measurement],
) -> None:
    """Write one row per verdict, in the order given; measurements are found by the candidate's id."""
    by_index = {candidate.index: candidate for candidate in candidates}
    rows = [
        {
            "name": by_index[verdict.index].name,
            "id": verdict.id,
            "index": verdict.index,
            "verdict": verdict.outcome,
            "reason": verdict.reason,
            "stage": verdict.stage,
            "evidence": json.dumps(verdict.evidence),
            **dataclasses.asdict(measurements.get(verdict.id, Measurement())),
            "earlier_sizings": [
                _eager_times(id, measurements[id])
                for id in by_index[verdict.index].earlier_ids
                if id in measurements
            ],
        }
        for verdict in verdicts
    ]
    write_table(path, table_of(rows, VERDICT))


def _eager_times(id: str, measurement: Measurement) -> dict[str, Any]:
    return {
        column.name: id if column.name == "id" else getattr(measurement, column.name)
        for column in columns_of(EarlierSizing)
    }


def read_verdicts(path: Path) -> list[Judged]:
    """Read what `write_verdicts` wrote."""
    rows = read_rows(path, VERDICT)
    try:
        return [_judged(row) for row in rows]
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: holds a verdict that is not ours ({error}); write it again") from error


def _judged(row: dict[str, Any]) -> Judged:
    facts = {column.name: row[column.name] for column in MEASUREMENT if row[column.name] is not None}
    verdict = Verdict(
        index=row["index"],
        id=row["id"],
        outcome=row["verdict"],
        reason=Reason(row["reason"]),
        stage=Stage(row["stage"]) if row["stage"] else None,
        evidence=json.loads(row["evidence"]),
    )
    return Judged(name=row["name"], verdict=verdict, measurement=Measurement(**checked_facts(facts)))


def read_timings(path: Path) -> dict[str, dict[str, Any]]:
    """Read recorded times from a `verdicts.parquet`: id -> those facts of `TIMES` that are known.

    Fit for `Measurement.with_facts`. Ids that were never timed are left out, earlier sizings are not.
    """
    columns = [column for column in VERDICT if column.name in ("id", "earlier_sizings", *TIMES)]
    times: dict[str, dict[str, Any]] = {}
    rows = read_rows(path, columns)
    earlier = [sizing for row in rows for sizing in row["earlier_sizings"] or ()]
    for row in [*rows, *earlier]:
        known = {name: row[name] for name in TIMES if row.get(name) is not None}
        if known:
            times.setdefault(row["id"], known)
    return times
