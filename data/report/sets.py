"""Sets of tasks as a report sees them: runs, audited sets and bare task sets in one form.

Readers raise InputError with one line about what cannot be read.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from composer.candidate import Candidate
from data.errors import InputError
from data.files import Judged, read_verdicts
from data.report.columns import MACHINE, known_columns
from data.rows import NEVER_SHOWN, is_licensed
from data.tables import column_names
from data.tasksets import open_taskset
from filters.measurement import Measurement
from filters.operators import canonical_name
from filters.policy import Policy
from filters.verdict import Verdict

_SHORT_SPELLINGS = {"nn": "torch.nn", "F": "torch.nn.functional"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """One task of a set and all that is known of it."""

    index: int
    """Place in the set, from 0."""
    name: str
    id: str
    verdict: Verdict | None = None
    """None in a set that was not judged."""
    ops: tuple[str, ...] = ()
    """Canonical names of the operators that ran, or of those that the task claims where it never ran."""
    whole_layer: bool = False
    """A layer lifted from transformers."""
    code: str | None = None
    code_withheld: str = ""
    """Why there is no code."""
    facts: Measurement = field(default_factory=Measurement)
    machine: Mapping[str, Any] = field(default_factory=dict)
    """Device and versions of the measurement, by column; empty where nothing was measured."""
    composer: str | None = None
    seed: int | None = None
    source_license: str | None = None
    source_path: str | None = None

    @property
    def outcome(self) -> str | None:
        """Return the outcome of the verdict."""
        return self.verdict.outcome if self.verdict else None

    @property
    def speed_up(self) -> float | None:
        """Return how many times faster the compiled model is than eager."""
        eager, compiled = self.facts.eager_ms, self.facts.compile_ms
        return eager / compiled if eager and compiled else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSet:
    """A set of tasks with its name."""

    name: str
    rows: tuple[ReportRow, ...]
    settings: str | None = None
    """TOML of the run that made it."""
    policy: Policy = field(default_factory=Policy)

    @property
    def is_judged(self) -> bool:
        """Return whether the rows have verdicts."""
        return any(row.verdict for row in self.rows)

    @property
    def members(self) -> tuple[ReportRow, ...]:
        """Return the tasks that the set is made of: the accepted rows, or all where none is accepted."""
        return tuple(row for row in self.rows if row.outcome == "accepted") or self.rows


def read_judged_set(
    name: str,
    verdicts: Path,
    candidates: Iterable[Candidate] = (),
    *,
    machine: Mapping[str, Any] | None = None,
    settings: str | None = None,
    policy: Policy | None = None,
) -> ReportedSet:
    """Read a `verdicts.parquet`; the texts come from the candidates with equal ids, where there are any.

    `machine` is where a run measured, `settings` the TOML text that made it, `policy` what it was judged by.
    """
    judged = read_verdicts(verdicts)
    if not judged:
        raise InputError(f"{verdicts}: holds no verdicts; give a file with at least one")
    by_place: dict[object, Candidate] = {}
    for candidate in candidates:
        by_place.setdefault(candidate.id, candidate)
        by_place[candidate.index, candidate.id] = candidate
    rows = []
    for each in judged:
        place = (each.verdict.index, each.verdict.id)
        rows.append(_judged_row(each, by_place.get(place) or by_place.get(each.verdict.id), machine or {}))
    return ReportedSet(name=name, rows=tuple(rows), settings=settings, policy=policy or Policy())


def read_task_set(where: str) -> ReportedSet:
    """Read a task set of any origin; a dataset of ours brings the facts in its columns along."""
    found = open_taskset(where)
    facts = known_columns(found.tables) if found.tables else [{} for _ in found.candidates]
    rows = tuple(_task_row(*pair) for pair in zip(found.candidates, facts, strict=True))
    return ReportedSet(name=Path(where).stem or where, rows=rows)


def holds_verdicts(path: Path) -> bool:
    """Return whether a file is a `verdicts.parquet` and not a set of tasks."""
    return path.suffix == ".parquet" and {"verdict", "evidence"} <= column_names(path)


def _judged_row(judged: Judged, candidate: Candidate | None, machine: Mapping[str, Any]) -> ReportRow:
    facts, verdict = judged.measurement, judged.verdict
    row = ReportRow(
        index=verdict.index,
        name=judged.name,
        id=verdict.id,
        verdict=verdict,
        ops=facts.ops or (),
        code_withheld="Verdicts alone hold no source.",
        facts=facts,
        machine=machine if facts.stages_done else {},
    )
    if candidate is None:
        return row
    row = _with_origin(row, candidate)
    if verdict.reason in NEVER_SHOWN:
        return replace(row, code=None, code_withheld=f"The source of a {verdict.reason} task is not shown.")
    if verdict.outcome in ("rejected", "infrastructure") and not is_licensed(candidate):
        return replace(row, code=None, code_withheld="Not accepted and without a known licence.")
    return row


def _task_row(candidate: Candidate, columns: Mapping[str, Any]) -> ReportRow:
    columns = dict(columns)
    machine = {name: columns.pop(name) for name in MACHINE if name in columns}
    ran = columns.pop("ops", None)
    facts = Measurement(**columns, ops=tuple(json.loads(ran)) if ran else None)
    row = ReportRow(
        index=candidate.index,
        name=candidate.name,
        id=candidate.id,
        ops=facts.ops or (),
        facts=facts,
        machine=machine if facts.eager_ms is not None else {},
    )
    return _with_origin(row, candidate)


def _with_origin(row: ReportRow, candidate: Candidate) -> ReportRow:
    return replace(
        row,
        ops=row.ops or tuple(_canonical(name) for name in candidate.requested_ops),
        whole_layer=candidate.data_source == "transformers",
        code=candidate.code,
        composer=candidate.composer,
        seed=candidate.seed,
        source_license=candidate.source_license,
        source_path=candidate.source_path,
    )


def _canonical(label: str) -> str:
    """Return the canonical name of a claimed operator, the label as it stands where there is none."""
    first, dot, rest = label.partition(".")
    path = f"{_SHORT_SPELLINGS.get(first, first)}{dot}{rest}"
    return canonical_name(path) or path


def rows_with(rows: Sequence[ReportRow], fact: str) -> list[tuple[ReportRow, Any]]:
    """Return the rows for which a fact is known, with its value."""
    return [(row, value) for row in rows if (value := getattr(row.facts, fact)) is not None]
