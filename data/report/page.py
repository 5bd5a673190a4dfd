"""Writing the page: one HTML file that needs nothing else.

The charts are drawn in the browser by Observable Plot (with d3), which stand in `vendor/` and travel inside
the file. A content policy in the page forbids it every request.
"""

import dataclasses
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from data.report.charts import Chart, figure, number
from data.report.contents import (
    funnel_chart,
    operator_charts,
    similarity_charts,
    size_charts,
    time_charts,
)
from data.report.payload import packed_rows
from data.report.sets import ReportedSet
from data.report.tables import funnel_entries, glances, machines, nearest_rows, provenance
from data.tables import replacing

_LIBRARIES = ("d3.min.js", "plot.umd.min.js")
_SCRIPTS = ("theme.js", "charts.js", "highlight.js", "rows.js", "detail.js", "table.js")
_SECTIONS = (
    ("times", "Times", time_charts),
    ("operators", "Operators", operator_charts),
    ("similarity", "Similarity to KernelBench", similarity_charts),
    ("sizes", "Sizes and types", size_charts),
)
_ID = re.compile(r"[0-9a-f]{64}")


def write_report(path: Path, reported: ReportedSet, other: ReportedSet | None = None) -> None:
    """Write the report of a set, or of two side by side; the table of rows is the first's.

    Lone surrogates in names become their escapes, as in our tables.
    Raises StorageError.
    """
    with replacing(path) as temporary:
        text = report_html(reported, other)
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def report_html(reported: ReportedSet, other: ReportedSet | None = None) -> str:
    """Return the whole page."""
    sets = [reported] if other is None else [reported, _renamed(other, reported.name)]
    judged = [each for each in sets if each.is_judged]
    funnel = funnel_chart(sets)
    sections = {key: charts_of(sets) for key, _, charts_of in _SECTIONS}
    charts = [*([funnel] if funnel else []), *(chart for group in sections.values() for chart in group)]
    template = _templates().get_template("report.html")
    return template.render(
        sets=sets,
        reported=reported,
        judged=judged,
        glances=glances(sets),
        funnel=funnel,
        ends=funnel_entries(sets),
        titles=[(key, title) for key, title, _ in _SECTIONS],
        sections=sections,
        nearest=nearest_rows(reported),
        provenance=[(each.name, provenance(each)) for each in sets],
        machines=[(each.name, machines(each)) for each in sets],
        charts=_embedded([dataclasses.asdict(chart) for chart in charts]),
        rows=packed_rows(reported),
        styles=_part("report.css"),
        libraries=[_vendored(name) for name in _LIBRARIES],
        licenses=_vendored("LICENSES.txt"),
        scripts=[_part(name) for name in _SCRIPTS],
    )


def _renamed(other: ReportedSet, taken: str) -> ReportedSet:
    """Give the second set a name of its own."""
    return other if other.name != taken else dataclasses.replace(other, name=f"{other.name} (other)")


def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("data.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"figure": _figure, "number": number, "figures": _figures, "short": _short}
    return environment


def _figure(value: float | None) -> str:
    return "" if value is None else figure(value)


def _short(name: str) -> str:
    """Return the beginning of a name that is an id, any other name as it is."""
    return name[:12] if _ID.fullmatch(name) else name


def _figures(chart: Chart) -> list[tuple[str, list[str]]]:
    """Return the numbers of a chart as lines of a table; bins that are empty in every series are left out."""
    lines = zip(chart.labels, *(series.numbers for series in chart.series), strict=True)
    return [
        (label, [number(n, chart.shares) for n in numbers])
        for label, *numbers in lines
        if chart.kind == "bars" or any(numbers)
    ]


def _embedded(value: Sequence[Any]) -> Markup:
    """Return JSON that may stand inside a script element."""
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def _part(name: str) -> Markup:
    return Markup((files("data.report") / "page" / name).read_text(encoding="utf-8"))


def _vendored(name: str) -> Markup:
    return Markup((files("data.report") / "vendor" / name).read_text(encoding="utf-8"))
