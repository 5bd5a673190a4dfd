"""The `opweaver` command: runs and their parts.

`flows.cli_crawl` has the command for operators, `flows.cli_tasks` those for tasks that exist.

Everything heavy is imported by the command that needs it, so that `--help` is quick and only `run` needs
prefect.
"""

import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated, Any

import typer

from flows import cli_crawl, cli_doctor, cli_examples, cli_llm, cli_publish, cli_report, cli_tasks
from flows.errors import INTERRUPTED, UsageError, exit_code, explain
from flows.settings import Settings, load_settings

app = typer.Typer(
    help="Makes, judges and publishes training tasks for GPU-kernel agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_interrupted = Event()


def main() -> None:
    """Run the command; every expected error becomes one line on stderr and an exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    try:
        _require_utf8(sys.argv)
        code = app(standalone_mode=False) or 0
    except Exception as error:
        code = INTERRUPTED if _interrupted.is_set() else _failed(error)  # libraries wrap what interrupts them
    if code == INTERRUPTED:
        _tell("interrupted; what was finished is kept, run the same command again to go on")
    sys.exit(code)


def _failed(error: Exception) -> int:
    """Tell of an error that has an exit code, and return that; raise others again."""
    code = exit_code(error) or getattr(error, "exit_code", None)  # typer's usage errors carry theirs
    if code is None:
        raise error
    text = error.format_message() if hasattr(error, "format_message") else explain(error)
    _tell(" ".join(text.split()) or "give a command; see `opweaver --help`")
    return code


def _require_utf8(arguments: list[str]) -> None:
    """Refuse a name that neither a file of ours nor a line of output can hold."""
    for argument in arguments:
        try:
            argument.encode("utf-8")
        except UnicodeEncodeError:
            raise UsageError(f"{argument!a}: is not UTF-8; rename the file or folder") from None


def _interrupt(number: int, frame: FrameType | None) -> None:
    _interrupted.set()
    raise KeyboardInterrupt


def _tell(text: str) -> None:
    print(f"opweaver: {text}", file=sys.stderr)


_Composer = Annotated[str | None, typer.Option(help="Who writes the layers: rules or llm.")]
_LLM_PANEL = "With --composer llm"
_Model = Annotated[
    str | None, typer.Option(help="Model, as its server names it.", rich_help_panel=_LLM_PANEL)
]
_Llm = Annotated[
    str | None,
    typer.Option(
        "--llm",
        help="openai: the endpoint of OPENAI_BASE_URL and OPENAI_API_KEY. local: a small model run here.",
        rich_help_panel=_LLM_PANEL,
    ),
]
_Mode = Annotated[
    str | None,
    typer.Option(
        help="code: the model writes the task. plan: it fills in a schema and the code is ours. free: it "
        "chooses the operators too.",
        rich_help_panel=_LLM_PANEL,
    ),
]
_MaxCost = Annotated[
    float | None,
    typer.Option(help="Stop before this many US dollars are spent.", rich_help_panel=_LLM_PANEL),
]
_Batch = Annotated[
    bool | None,
    typer.Option(
        "--batch", help="Ask through the Batch API: half the price, within 24 h.", rich_help_panel=_LLM_PANEL
    ),
]


_RAY_PANEL = "With --engine ray"


@app.command(rich_help_panel="Make a dataset")
def run(
    config: Annotated[Path | None, typer.Option(help="Settings file.", show_default="opweaver.toml")] = None,
    run_dir: Annotated[Path | None, typer.Option(help="Folder of the run.")] = None,
    count: Annotated[int | None, typer.Option(help="Accepted rows wanted.")] = None,
    seed: Annotated[int | None, typer.Option(help="Decides what every candidate is.")] = None,
    source: Annotated[list[str] | None, typer.Option(help=cli_crawl.SOURCE_HELP)] = None,
    dataset: Annotated[
        str | None,
        typer.Option("--from", help="Measure the tasks of this set, and size them for this device."),
    ] = None,
    composer: _Composer = None,
    model: _Model = None,
    llm: _Llm = None,
    mode: _Mode = None,
    max_cost: _MaxCost = None,
    batch: _Batch = None,
    device: Annotated[str | None, typer.Option(help="Where candidates run: auto, cpu or cuda.")] = None,
    workers: Annotated[int | None, typer.Option(help="Candidates run at once.")] = None,
    engine: Annotated[str | None, typer.Option(help="Where shards are measured: local or ray.")] = None,
    address: Annotated[
        str | None, typer.Option(help="Of the head node, HOST:PORT.", rich_help_panel=_RAY_PANEL)
    ] = None,
    mixed_devices: Annotated[
        bool | None,
        typer.Option(
            "--mixed-devices",
            help="Let several kinds of device measure one run.",
            rich_help_panel=_RAY_PANEL,
        ),
    ] = None,
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
    asked = _given(model=model, server=llm, mode=mode, max_cost=max_cost, batch=batch)
    settings = load_settings(
        config,
        {
            **_given(sources=tuple(source) if source else None),
            "run": _given(
                run_dir=run_dir, count=count, dataset=dataset, seed=seed, engine=engine, timings=timings,
                deadline_minutes=deadline, unsafe=unsafe, address=address, mixed_devices=mixed_devices,
            ),
            "composer": _given(composer=composer),
            "llm": asked,
            "filters": _given(device=device, workers=workers),
        },
    )  # fmt: skip
    from flows import given_run, llm_run, llm_settings, summary
    from flows.run_folder import RunFolder

    settings = given_run.counted(settings)
    llm_settings.require_fitting(asked, composes=llm_run.composes(settings))
    folder = RunFolder(settings.run.run_dir)
    deadline_passed, cost_limit = (False, None) if folder.is_finished(settings) else _synthesize(settings)
    summary.show_run(folder)
    if cost_limit:
        llm_run.require_rows(folder, settings.run.count, cost_limit)
    summary.require_rows(folder, settings.run, deadline_passed=deadline_passed)


def _synthesize(settings: Settings) -> tuple[bool, str | None]:
    """Run the flows; return whether the deadline ended them, and what was spent if the limit of costs did."""
    from flows import pipeline, site
    from flows.prefect_server import PrefectServer

    with ExitStack() as stack:
        server = PrefectServer(stack.enter_context(site.joined(settings)))
        opened = stack.enter_context(pipeline.opened(settings))
        stack.enter_context(server.api())
        from flows.flows import synthesize

        synthesize(opened)
        return opened.site.stopped, opened.llm.cost_limit if opened.llm else None


@app.command(rich_help_panel="Make a dataset")
def compose(
    out: Annotated[Path, typer.Option(help="Parquet file to write.")],
    count: Annotated[int, typer.Option(min=1, help="Number of candidates.")],
    seed: Annotated[int | None, typer.Option(help="Decides what every candidate is.")] = None,
    operators: Annotated[
        Path | None, typer.Option(help="What `opweaver crawl` wrote; else the sources of the settings.")
    ] = None,
    composer: _Composer = None,
    model: _Model = None,
    llm: _Llm = None,
    mode: _Mode = None,
    max_cost: _MaxCost = None,
    batch: _Batch = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print the requests, tokens and cost; send nothing.", rich_help_panel=_LLM_PANEL
        ),
    ] = False,
) -> None:
    """Write candidates without running any. The same seed gives the same file."""
    asked = _given(model=model, server=llm, mode=mode, max_cost=max_cost, batch=batch)
    settings = load_settings(
        options={"run": _given(seed=seed), "composer": _given(composer=composer), "llm": asked}
    )
    from composer.profiles import profile_for
    from data.files import read_operators, write_candidates
    from filters.engine import Engine
    from flows import llm_run, llm_settings
    from flows.composing import compose_at, operators_of
    from flows.progress import Progress

    given = asked | _given(dry_run=dry_run or None)
    llm_settings.require_fitting(given, composes=llm_run.composes(settings))
    loaded = operators_of(settings)  # also where a file is given: its own operators are built from them
    known = read_operators(operators) if operators else loaded
    asked_for = settings.filters.device  # need not be here: nothing runs on it
    device = Engine(settings.filters, settings.policy).device if asked_for == "auto" else asked_for
    profile = profile_for(settings.composer.profile, device)
    if llm_run.composes(settings):
        from flows import llm_compose

        (llm_compose.dry_run if dry_run else llm_compose.compose)(out, count, known, profile, settings)
        if dry_run:
            return
    else:
        write_candidates(out, compose_at(range(count), settings, known, profile, Progress()))
    typer.echo(f"{count:,} candidates: {out}")


@app.command(rich_help_panel="Make a dataset")
def judge(run_dir: Annotated[Path, typer.Argument(help="Folder of a run.")]) -> None:
    """Judge the stored measurements of a run again, by the policy in its settings.toml; runs no task."""
    folder_settings = run_dir / "settings.toml"
    settings = load_settings(folder_settings, {"run": {"run_dir": run_dir}})
    from flows import pipeline, summary
    from flows.run_folder import RunFolder

    folder = RunFolder(run_dir)
    with folder.claimed():
        pipeline.judge_again(folder, settings)
    summary.show_run(folder)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


cli_crawl.register(app)
cli_doctor.register(app)
app.add_typer(cli_llm.app, name="llm", rich_help_panel="Look around")
cli_tasks.register(app)
cli_report.register(app)
cli_publish.register(app)
cli_examples.add_to(app)
