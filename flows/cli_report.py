"""The command `report`."""

import dataclasses
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from flows.errors import UsageError

if TYPE_CHECKING:
    from data.report.sets import ReportedSet
    from flows.run_folder import RunFolder

_NAME = "report.html"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(rich_help_panel="Look around")(report)


def report(
    subject: Annotated[
        str, typer.Argument(help="A run folder, a verdicts.parquet, or any set of tasks that `audit` reads.")
    ],
    compare: Annotated[
        str | None, typer.Option(metavar="OTHER", help="A second one to put beside it.")
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(metavar="DATASET", help="Where the tasks are that a verdicts.parquet was made of."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="HTML file to write.", show_default=f"RUN_DIR/{_NAME}, or {_NAME} here"),
    ] = None,
) -> None:
    """Write one self-contained page about a run or a set of tasks."""
    from data.report.page import write_report

    if tasks and not any(_holds_verdicts(where) for where in (subject, compare) if where):
        raise UsageError("--tasks: belongs to a verdicts.parquet, and none is given; leave it out")
    reported = _read(subject, tasks)
    other = _read(compare, tasks) if compare else None
    path = out or (Path(subject) / _NAME if _run_at(subject) else Path(_NAME))
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; give the name of a file to --out")
    write_report(path, reported, other)
    typer.echo(f"{len(reported.rows):,} rows, {path.stat().st_size / 1e6:.1f} MB: {path}")


def _read(where: str, tasks: str | None) -> "ReportedSet":
    from data.report.sets import read_judged_set, read_task_set
    from data.tasksets import read_taskset

    path = Path(where)
    if folder := _run_at(where):
        return _read_run(folder)
    if _holds_verdicts(where):
        return read_judged_set(path.stem, path, read_taskset(tasks) if tasks else ())
    return read_task_set(where)


def _holds_verdicts(where: str) -> bool:
    from data.report.sets import holds_verdicts

    return Path(where).is_file() and holds_verdicts(Path(where))


def _run_at(where: str) -> "RunFolder | None":
    from flows.run_folder import RunFolder

    folder = RunFolder(Path(where))
    return folder if folder.ledger.is_file() or folder.verdicts.is_file() else None


def _read_run(folder: "RunFolder") -> "ReportedSet":
    """Read the files of a run. Raises InputError or UsageError where one is missing or damaged."""
    from data.files import read_candidates
    from data.report.sets import read_judged_set
    from flows.settings import Settings, published_text

    missing = next((path for path in (folder.verdicts, folder.candidates) if not path.is_file()), None)
    if missing:
        raise UsageError(
            f"{folder.path}: has no {missing.name} yet; let `opweaver run` come to its end, or have "
            f"`opweaver judge {folder.path}` write it again"
        )
    try:
        settings = Settings(**tomllib.loads(folder.settings.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise UsageError(
            f"{folder.settings}: missing or no settings of a run; `opweaver judge {folder.path}` says more"
        ) from None
    return read_judged_set(
        folder.path.resolve().name,
        folder.verdicts,
        read_candidates(folder.candidates),
        machine=dataclasses.asdict(folder.read_environments()[0]),
        settings=published_text(settings),
        policy=settings.policy,
    )
