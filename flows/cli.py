"""The `opweaver` command: runs and their parts.

`flows.cli_crawl` has the command for operators, `flows.cli_tasks` those for tasks that exist.

Everything heavy is imported by the command that needs it, so that `--help` is quick and only `run` needs
prefect.
"""

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from flows import cli_crawl, cli_tasks
from flows.errors import INTERRUPTED, exit_code, explain
from flows.settings import Settings, load_settings

app = typer.Typer(
    help="Makes, judges and publishes training tasks for GPU-kernel agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command; every expected error becomes one line on stderr and an exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False) or 0
    except Exception as error:
        code = exit_code(error) or getattr(error, "exit_code", None)  # typer's usage errors carry theirs
        if code is None:
            raise
        text = error.format_message() if hasattr(error, "format_message") else explain(error)
        _tell(" ".join(text.split()) or "give a command; see `opweaver --help`")
    if code == INTERRUPTED:
        _tell("interrupted; what was finished is kept, run the same command again to go on")
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _tell(text: str) -> None:
    print(f"opweaver: {text}", file=sys.stderr)


@app.command(rich_help_panel="Make a dataset")
def run(
    config: Annotated[Path | None, typer.Option(help="Settings file.", show_default="opweaver.toml")] = None,
    run_dir: Annotated[Path | None, typer.Option(help="Folder of the run.")] = None,
    count: Annotated[int | None, typer.Option(help="Accepted rows wanted.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides what every candidate is.")] = None,
    source: Annotated[list[str] | None, typer.Option(help=cli_crawl.SOURCE_HELP)] = None,
    composer: Annotated[str | None, typer.Option(help="Who writes the layers: rules.")] = None,
    device: Annotated[str | None, typer.Option(help="Where candidates run: auto, cpu or cuda.")] = None,
    workers: Annotated[int | None, typer.Option(help="Candidates run at once.")] = None,
    engine: Annotated[str | None, typer.Option(help="Where shards are measured: local.")] = None,
    timings: Annotated[
        Path | None, typer.Option(help="A verdicts.parquet whose times replace live ones.")
    ] = None,
    deadline: Annotated[float | None, typer.Option(help="Stop after this many minutes.")] = None,
    unsafe: Annotated[
        bool | None, typer.Option("--unsafe", help="Run foreign code without a sandbox.")
    ] = None,
) -> None:
    """Compose, measure and judge candidates until enough are accepted, then write the dataset.

    Killed or interrupted at any moment, the same command goes on where it stopped.
    """
    settings = load_settings(
        config,
        {
            **_given(sources=tuple(source) if source else None),
            "run": _given(
                run_dir=run_dir, count=count, seed=seed, engine=engine, timings=timings,
                deadline_minutes=deadline, unsafe=unsafe,
            ),
            "composer": _given(composer=composer),
            "filters": _given(device=device, workers=workers),
        },
    )  # fmt: skip
    from flows import summary
    from flows.run_folder import RunFolder

    folder = RunFolder(settings.run.run_dir)
    deadline_passed = not folder.is_finished(settings) and _synthesize(settings)
    summary.show_run(folder)
    summary.require_rows(folder, settings.run.count, deadline_passed=deadline_passed)


def _synthesize(settings: Settings) -> bool:
    """Run the flows; return whether the deadline ended them."""
    from flows import pipeline
    from flows.prefect_server import PrefectServer

    server = PrefectServer()
    with pipeline.opened(settings) as opened, server.api():
        from flows.flows import synthesize

        synthesize(opened)
        return opened.measuring.stopped


@app.command(rich_help_panel="Make a dataset")
def compose(
    out: Annotated[Path, typer.Option(help="Parquet file to write.")],
    count: Annotated[int, typer.Option(min=1, help="Number of candidates.")],
    seed: Annotated[int | None, typer.Option(help="Decides what every candidate is.")] = None,
    operators: Annotated[
        Path | None, typer.Option(help="What `opweaver crawl` wrote; else the sources of the settings.")
    ] = None,
    composer: Annotated[str | None, typer.Option(help="Who writes the layers: rules.")] = None,
) -> None:
    """Write candidates without running any. The same seed gives the same file."""
    settings = load_settings(options={"run": _given(seed=seed), "composer": _given(composer=composer)})
    from data.files import read_operators, write_candidates
    from filters.engine import Engine
    from flows import pipeline
    from flows.progress import Progress

    known = read_operators(operators) if operators else pipeline.operators_of(settings)
    profile = pipeline.profile_for(settings, Engine(settings.filters, settings.policy).device)
    share = settings.composer.layers_share
    write_candidates(
        out, pipeline.compose_at(range(count), known, profile, settings.run.seed, Progress(), share)
    )
    typer.echo(f"{count:,} candidates: {out}")


@app.command(rich_help_panel="Make a dataset")
def judge(run_dir: Annotated[Path, typer.Argument(help="Folder of a run.")]) -> None:
    """Judge the stored measurements of a run again, by the policy in its settings.toml; runs no task."""
    folder_settings = run_dir / "settings.toml"
    settings = load_settings(folder_settings, {"run": {"run_dir": run_dir}})
    from flows import pipeline, summary
    from flows.run_folder import RunFolder

    folder = RunFolder(run_dir)
    pipeline.judge_again(folder, settings)
    summary.show_run(folder)


@app.command(rich_help_panel="Look around")
def doctor() -> None:
    """Check torch, the device and the sandbox."""
    settings = load_settings()
    from filters.doctor import report

    lines = report(settings.filters)
    for name, ok, detail in lines:
        typer.echo(f"{'ok  ' if ok else 'FAIL'}  {name}: {detail}")
    if not all(ok for _, ok, _ in lines):
        raise typer.Exit(3)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


cli_crawl.register(app)
cli_tasks.register(app)
