"""The tables of a report: figures at a glance, the funnel with examples, nearest tasks, provenance."""

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from data.funnel import funnel
from data.report.charts import figure
from data.report.operators import composed_ops, pairs
from data.report.payload import plain
from data.report.sets import ReportedSet, ReportRow, rows_with

_EXAMPLES = 3
_NEAREST = 10
_EVIDENCE_SHOWN = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """One figure of each set; None where it is not known."""

    label: str
    note: str
    values: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunnelEntry:
    """One end of the funnel: how many of each set, and examples from the first."""

    stage: str
    reason: str
    counts: tuple[int, ...]
    shares: tuple[float, ...]
    examples: tuple[ReportRow, ...]
    evidence: str
    """Of the first example."""


def glances(sets: Sequence[ReportedSet]) -> list[Glance]:
    """Return the figures that at least one set has."""
    found = [
        Glance(label=label, note=note, values=tuple(of(each) for each in sets))
        for label, note, of in _GLANCES
    ]
    return [glance for glance in found if any(value is not None for value in glance.values)]


def funnel_entries(sets: Sequence[ReportedSet]) -> list[FunnelEntry]:
    """Return where the candidates of the judged sets ended."""
    judged = [each for each in sets if each.is_judged]
    verdicts = [[row.verdict for row in each.rows if row.verdict] for each in judged]
    counts = [Counter({(line.stage, line.reason): line.candidates for line in funnel(v)}) for v in verdicts]
    examples: dict[tuple[str, str], list[ReportRow]] = defaultdict(list)
    for row in judged[0].rows if judged else ():
        if row.verdict:
            end = str(row.verdict.stage) if row.outcome == "rejected" else row.verdict.outcome
            examples[end, row.verdict.reason.value].append(row)
    everything = [verdict for each in verdicts for verdict in each]
    return [
        FunnelEntry(
            stage=line.stage,
            reason=line.reason,
            counts=tuple(each[line.stage, line.reason] for each in counts),
            shares=tuple(each[line.stage, line.reason] / each.total() for each in counts),
            examples=tuple(examples[line.stage, line.reason][:_EXAMPLES]),
            evidence=_evidence(examples[line.stage, line.reason]),
        )
        for line in funnel(everything)
    ]


def nearest_rows(reported: ReportedSet) -> list[ReportRow]:
    """Return the rows that come nearest to KernelBench by either instrument."""
    scored = [row for row, _ in rows_with(reported.rows, "kb_operator_similarity")]
    return sorted(scored, key=lambda row: (-_nearness(row), row.index))[:_NEAREST]


def provenance(reported: ReportedSet) -> list[tuple[str, str, int]]:
    """Return where the rows come from: kind of fact, value, rows."""
    facts: tuple[tuple[str, Callable[[ReportRow], object]], ...] = (
        ("composer", lambda row: row.composer),
        ("seed", lambda row: row.seed),
        ("licence of the source", lambda row: row.source_license),
        ("taken from", lambda row: row.source_path and row.source_path.partition(":")[0]),
    )
    lines = []
    for label, of in facts:
        counts = Counter(str(value) for row in reported.members if (value := of(row)) is not None)
        lines += [(label, value, count) for value, count in counts.most_common(_NEAREST)]
        if 0 < counts.total() < len(reported.members):
            lines.append((label, "not stated", len(reported.members) - counts.total()))
    return lines


def machines(reported: ReportedSet) -> list[tuple[dict[str, str], int]]:
    """Return the distinct machines and versions that measured, with their rows."""
    known = [row.machine for row in reported.rows if row.machine]
    counts = Counter(json.dumps(machine) for machine in known)
    return [
        ({name: _said(value) for name, value in json.loads(machine).items()}, count)
        for machine, count in counts.most_common()
    ]


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def _nearness(row: ReportRow) -> float:
    return max(row.facts.kb_ast_similarity or 0.0, row.facts.kb_operator_similarity or 0.0)


def _evidence(rows: Sequence[ReportRow]) -> str:
    evidence = rows[0].verdict.evidence if rows and rows[0].verdict else {}
    text = ", ".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(plain(value))}"
        for name, value in evidence.items()
        if value not in ({}, [])
    )
    return text if len(text) <= _EVIDENCE_SHOWN else f"{text[:_EVIDENCE_SHOWN]} …"


def _accepted(reported: ReportedSet) -> str | None:
    if not reported.is_judged:
        return None
    count = sum(row.outcome == "accepted" for row in reported.rows)
    return f"{count:,} ({count / len(reported.rows):.1%})"


def _repeats(reported: ReportedSet) -> str:
    return f"{len(reported.members) - len({row.id for row in reported.members}):,}"


def _distinct(names: Callable[[ReportRow], Sequence[str]]) -> Callable[[ReportedSet], str | None]:
    def count(reported: ReportedSet) -> str | None:
        found = {name for row in reported.members for name in names(row)}
        return f"{len(found):,}" if found else None

    return count


def _head_share(reported: ReportedSet) -> str | None:
    uses = Counter(name for row in reported.members for name in composed_ops(row))
    return f"{sum(n for _, n in uses.most_common(20)) / uses.total():.0%}" if uses else None


def _median(of: Callable[[ReportRow], float | None], unit: str = "") -> Callable[[ReportedSet], str | None]:
    def median(reported: ReportedSet) -> str | None:
        values = [value for row in reported.members if (value := of(row)) is not None]
        return figure(statistics.median(values)) + unit if values else None

    return median


def _highest(fact: str) -> Callable[[ReportedSet], str | None]:
    def highest(reported: ReportedSet) -> str | None:
        values = [value for _, value in rows_with(reported.members, fact)]
        return f"{max(values):.2f}" if values else None

    return highest


def _timed(reported: ReportedSet) -> str:
    timed = sum(row.facts.eager_ms is not None for row in reported.members)
    return f"{timed / len(reported.members):.0%}"


_GLANCES: tuple[tuple[str, str, Callable[[ReportedSet], str | None]], ...] = (
    ("candidates", "Rows with a verdict.", lambda s: f"{len(s.rows):,}" if s.is_judged else None),
    ("accepted", "Rows that passed every filter.", _accepted),
    ("tasks", "Rows that the figures below are about: the accepted ones, or all where none is.",
     lambda s: f"{len(s.members):,}"),
    ("repeated texts", "Rows whose source is byte for byte that of an earlier row.", _repeats),
    ("with a measured time", "Share of the tasks that carry an eager time.", _timed),
    ("median eager time", "Median over the tasks.", _median(lambda row: row.facts.eager_ms, " ms")),
    ("median compiled time", "Median over the tasks.", _median(lambda row: row.facts.compile_ms, " ms")),
    ("median speed-up of compile", "Eager time divided by compiled time.",
     _median(lambda row: row.speed_up, "×")),
    ("distinct operators", "Canonical names, over all tasks.", _distinct(composed_ops)),
    ("distinct pairs", "Operators that follow each other.", _distinct(pairs)),
    ("uses of the top 20 operators", "Share of all uses; lower is more varied.", _head_share),
    ("median input size", "All input tensors of a task.",
     _median(lambda row: row.facts.input_bytes and row.facts.input_bytes / 1e6, " MB")),
    ("highest similarity, paper's metric", "To any KernelBench task.", _highest("kb_ast_similarity")),
    ("highest similarity, operator-aware", "To any KernelBench task.", _highest("kb_operator_similarity")),
)  # fmt: skip
