"""The commands for tasks that exist already: `check`, `filter`, `audit`."""

from pathlib import Path
from typing import Annotated

import typer

from flows.errors import UsageError
from flows.settings import load_settings

_PANEL = "Judge tasks"
_Deadline = Annotated[float | None, typer.Option(min=0, help="Stop after this many minutes.")]
_Skip = Annotated[
    bool, typer.Option("--skip-source-filters", help="Run what the source filters would reject.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (check, filter_, audit):
        app.command(command.__name__.rstrip("_"), rich_help_panel=_PANEL)(command)


def check(
    task: Annotated[Path, typer.Argument(help="A Python file with Model, get_inputs and get_init_inputs.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print all facts as JSON.")] = False,
    skip_source_filters: _Skip = False,
) -> None:
    """Judge one task file. Exit code 0: accepted, 1: rejected."""
    settings = load_settings()
    if not task.is_file():
        raise UsageError(f"{task}: no such file; check the path")
    from data.tasksets import read_taskset
    from flows import summary, taskset
    from flows.pipeline import verdicts_of

    candidates = read_taskset(str(task))
    if len(candidates) != 1:
        raise UsageError(f"{task}: holds {len(candidates):,} tasks; use `opweaver audit`")
    measurements = taskset.measured(candidates, settings, skip_source_filters=skip_source_filters)
    (verdict,) = verdicts_of(
        candidates, measurements, settings.policy, skip_source_filters=skip_source_filters
    )
    measurement = measurements.get(candidates[0].id)
    if as_json:
        typer.echo(summary.verdict_json(candidates[0], verdict, measurement))
    else:
        summary.show_verdict(verdict, measurement)
    summary.require_sum(candidates, [verdict])
    if verdict.outcome == "rejected":
        raise typer.Exit(1)


def filter_(
    candidates: Annotated[Path, typer.Argument(help="What `opweaver compose` wrote, or any task set.")],
    out: Annotated[Path, typer.Option(help="Parquet file to write.")],
    deadline: _Deadline = None,
) -> None:
    """Measure and judge candidates. What was stopped goes on when the same command is given again."""
    _judge(str(candidates), out, deadline=deadline)


def audit(
    dataset: Annotated[
        str, typer.Argument(help="A .parquet or .jsonl file, a folder of .py files, a Hub id.")
    ],
    out: Annotated[Path, typer.Option(help="Parquet file to write.")],
    static_only: Annotated[bool, typer.Option("--static-only", help="Run no task at all.")] = False,
    skip_source_filters: _Skip = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Look at the first N tasks.")] = None,
    deadline: _Deadline = None,
) -> None:
    """Judge any task set: Ops-6K's and KernelBench's columns are recognised.

    What was stopped goes on when the same command is given again.
    """
    _judge(
        dataset,
        out,
        static_only=static_only,
        skip_source_filters=skip_source_filters,
        limit=limit,
        deadline=deadline,
    )


def _judge(
    dataset: str,
    out: Path,
    *,
    static_only: bool = False,
    skip_source_filters: bool = False,
    limit: int | None = None,
    deadline: float | None = None,
) -> None:
    settings = load_settings()
    from data.tasksets import read_taskset
    from filters.static_audit import count_shown
    from flows import summary, taskset

    candidates = read_taskset(dataset)[:limit]
    if static_only:
        verdicts = taskset.judge_statically(candidates, settings, out)
        summary.show_funnel(verdicts)
        summary.show_text_facts(count_shown(verdicts))
    else:
        verdicts = taskset.judge_taskset(
            candidates, settings, out, skip_source_filters=skip_source_filters, deadline_minutes=deadline
        )
        summary.show_funnel(verdicts)
    typer.echo(f"\n{len(verdicts):,} verdicts: {out}")
    if not static_only:
        if deadline is not None:
            summary.require_all_measured(out, verdicts)
        summary.require_sum(candidates, verdicts)
