"""What a report shows: its charts, each for one set or for two side by side.

Where sets are compared, shares take the place of counts. What was never measured is left out.
"""

from collections.abc import Callable, Sequence
from typing import Any

from data.report.charts import Bars, Chart, Names, Series, Values, bars, histogram, remaining
from data.report.operators import arity, composed_ops, kinds, pairs
from data.report.sets import ReportedSet, ReportRow, rows_with
from filters.reasons import Stage

ARITIES = ("1", "2", "3", "4", "5", "transformers")
ORIGINAL_ARITIES = Series(
    name="Ops-6K as published", numbers=(0.0340, 0.8377, 0.0762, 0.0280, 0.0123, 0.0118), total=6000
)
"""Shares of the rows with that many operators (arXiv 2602.24286, table 3)."""
SPEED_UP_SPAN = (0.5, 4.0)


def funnel_chart(sets: Sequence[ReportedSet]) -> Bars | None:
    """Return how many candidates are left after each stage, None where no set was judged."""
    judged = [each for each in sets if each.is_judged]
    if not judged:
        return None
    stages = [stage for stage in Stage if stage != Stage.REPLY or any(map(_has_replies, judged))]
    steps = ["candidates", *(f"after {stage}" for stage in stages), "accepted"]
    return remaining(
        "funnel", "Candidates left after each stage", _rows_axis(judged, "candidates"), steps,
        [Values(each.name, _left(each, stages)) for each in judged],
        caption="Stages in the order of the judging. Between the last stage and the accepted rows lie those "
        "beyond the wanted count and those without a final verdict.",
    )  # fmt: skip


def time_charts(sets: Sequence[ReportedSet]) -> list[Chart]:
    """Return run times and the gain of torch.compile, over every candidate that was timed."""
    policy = sets[0].policy
    band = (policy.eager_ms_min, policy.eager_ms_max)
    compared = len(sets) > 1
    times = [
        Values(_series_name(each, mode, compared), _facts(each.rows, fact))
        for each in sets
        for mode, fact in (("eager", "eager_ms"), ("compiled", "compile_ms"))
    ]
    gains = [
        Values(each.name, [row.speed_up for row in each.rows if row.speed_up is not None]) for each in sets
    ]
    return _present(
        histogram(
            "times", "Run time, eager and compiled", "median run time in ms (log axis)", times,
            caption=f"Every candidate that was timed, accepted or not. Shaded: {band[0]:g} to {band[1]:g} "
            "ms, where the eager time of an accepted row lies.",
            shares=compared, span=band, band=band,
        ),
        histogram(
            "speed-up", "Speed-up of torch.compile over eager", "eager time / compiled time (log axis)",
            gains, caption="Right of 1 the compiled model is faster.",
            shares=compared, span=SPEED_UP_SPAN, rule=1.0,
        ),
    )  # fmt: skip


def operator_charts(sets: Sequence[ReportedSet]) -> list[Chart]:
    """Return how many and which operators the tasks are made of, and which follow each other."""
    compared = len(sets) > 1

    def names(of_row: Callable[[ReportRow], Sequence[str]]) -> list[Names]:
        return [Names(each.name, [of_row(row) for row in each.members]) for each in sets]

    axis = _rows_axis(sets, "rows")
    return _present(
        bars(
            "arity", "Operators per task", "share of rows", names(arity), shares=True, order=ARITIES,
            published=ORIGINAL_ARITIES,
            caption="Against the shares that the paper of CUDA-Agent-Ops-6K gives (table 3).",
        ),
        bars(
            "kinds", "Kinds of operators", axis, names(kinds), shares=compared,
            caption="Rows that hold at least one operator of the kind.",
        ),
        bars(
            "operators", "Most frequent operators", axis, names(composed_ops), shares=compared,
            caption="Rows that hold the operator, however often.",
        ),
        bars(
            "pairs", "Most frequent pairs", axis, names(pairs), shares=compared,
            caption="Two operators that come one after the other.",
        ),
    )  # fmt: skip


def similarity_charts(sets: Sequence[ReportedSet]) -> list[Chart]:
    """Return how near the candidates come to KernelBench, by both instruments."""
    compared = len(sets) > 1
    limit = sets[0].policy.kb_similarity_max
    scores = (("by the paper's metric", "kb_ast_similarity"), ("operator-aware", "kb_operator_similarity"))
    if not compared:
        values = [Values(name, _facts(sets[0].rows, fact)) for name, fact in scores]
    else:
        values = [
            Values(f"{each.name}, {name}", _facts(each.rows, fact)) for each in sets for name, fact in scores
        ]
    return _present(
        histogram(
            "similarity", "Similarity to the nearest KernelBench task", "similarity, 0 to 1", values,
            caption=f"Every candidate with a score. Line: {limit:g}. Above it the paper's metric rejects; "
            "the operator-aware score rejects only together with the same operators.",
            log=False, span=(0.0, 1.0), rule=limit, shares=compared,
        )
    )  # fmt: skip


def size_charts(sets: Sequence[ReportedSet]) -> list[Chart]:
    """Return sizes and dtypes of the tasks."""
    compared = len(sets) > 1

    def of(fact: str, scale: float = 1.0) -> list[Values]:
        return [Values(each.name, [value / scale for value in _facts(each.members, fact)]) for each in sets]

    lengths = [
        Values(each.name, [len(row.code.splitlines()) for row in each.members if row.code]) for each in sets
    ]
    dtypes = [Names(each.name, [row.facts.input_dtypes or () for row in each.members]) for each in sets]
    return _present(
        histogram(
            "input-size", "Input size", "all input tensors together, MB (log axis)", of("input_bytes", 1e6),
            caption="Bytes of the tensors that get_inputs() returns.", shares=compared,
        ),
        histogram(
            "parameters", "Parameters", "elements (log axis)", of("n_params"),
            caption="Rows without parameters are left out.", shares=compared,
        ),
        bars(
            "dtypes", "Input dtypes", _rows_axis(sets, "rows"), dtypes, shares=compared,
            caption="Rows with at least one input tensor of the dtype.",
        ),
        histogram(
            "source", "Length of the source", "lines (log axis)", lengths,
            caption="Lines of the task's Python module.", shares=compared,
        ),
    )  # fmt: skip


def _left(reported: ReportedSet, stages: Sequence[Stage]) -> list[float]:
    ends = [row.verdict.stage for row in reported.rows if row.verdict and row.outcome == "rejected"]
    left = [len(reported.rows)]
    for stage in stages:
        left.append(left[-1] - ends.count(stage))
    return [*left, sum(row.outcome == "accepted" for row in reported.rows)]


def _has_replies(reported: ReportedSet) -> bool:
    return any(row.verdict and row.verdict.stage == Stage.REPLY for row in reported.rows)


def _facts(rows: Sequence[ReportRow], fact: str) -> list[Any]:
    return [value for _, value in rows_with(rows, fact)]


def _series_name(reported: ReportedSet, mode: str, compared: bool) -> str:
    return f"{reported.name}, {mode}" if compared else mode


def _rows_axis(sets: Sequence[ReportedSet], what: str) -> str:
    return f"share of {what}" if len(sets) > 1 else what


def _present(*charts: Chart | None) -> list[Chart]:
    return [chart for chart in charts if chart is not None]
