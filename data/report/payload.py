"""All rows of a set, packed for the page: columns as JSON, gzip, base64."""

import base64
import dataclasses
import gzip
import json
from collections.abc import Sequence
from typing import Any

from data.report.operators import short_name
from data.report.sets import ReportedSet, ReportRow
from data.schema import DATASET, VERDICT
from filters.measurement import Measurement

_LEFT_OUT = frozenset({"ops", "output_digest"})
"""Facts that are shown otherwise or that tell a reader nothing."""
_FACTS = tuple(field.name for field in dataclasses.fields(Measurement) if field.name not in _LEFT_OUT)
_DIGITS = 6
_UNITS = {column.name: {"unit": column.unit, "meaning": column.meaning} for column in (*DATASET, *VERDICT)}


def packed_rows(reported: ReportedSet) -> str:
    """Return the rows as `{"columns": {name: [value per row]}, "units": {...}}`, packed.

    A column without any value is left out. Every value stands as it is in the files, floats with six
    significant digits.
    """
    rows = reported.rows
    columns = {name: values for name, values in _columns(rows).items() if any(v is not None for v in values)}
    content = {"columns": columns, "units": {name: _UNITS[name] for name in columns if name in _UNITS}}
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode()


def _columns(rows: Sequence[ReportRow]) -> dict[str, list[Any]]:
    return {
        "index": [row.index for row in rows],
        "name": [row.name for row in rows],
        "id": [row.id for row in rows],
        "verdict": [row.outcome for row in rows],
        "reason": [row.verdict and str(row.verdict.reason) for row in rows],
        "stage": [row.verdict and row.verdict.stage and str(row.verdict.stage) for row in rows],
        "evidence": [plain(row.verdict.evidence) if row.verdict else None for row in rows],
        "ops": [[short_name(name) for name in row.ops] for row in rows],
        "speed_up": [plain(row.speed_up) for row in rows],
        **{name: [plain(getattr(row.facts, name)) for row in rows] for name in _FACTS},
        "composer": [row.composer for row in rows],
        "seed": [row.seed for row in rows],
        "source_license": [row.source_license for row in rows],
        "source_path": [row.source_path for row in rows],
        "code": [row.code for row in rows],
        "code_withheld": [None if row.code else row.code_withheld for row in rows],
    }


def plain(value: Any) -> Any:
    """Return a value that JSON and browsers know: no NaN, no infinity, floats cut to what a reader needs."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if abs(value) < float("inf") else str(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    return value
