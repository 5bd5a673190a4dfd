"""The command that looks at the machine: `doctor`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.errors import UsageError
from flows.settings import Settings, load_settings

_PROFILE_SECONDS = 120
"""Budget of `doctor --profile` for layers of single operators."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(rich_help_panel="Look around")(doctor)


def doctor(
    profile: Annotated[
        bool, typer.Option("--profile", help="Measure what the device can do, for the sizes of layers.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="With --profile: TOML file to write, for `[composer] profile`.")
    ] = None,
) -> None:
    """Check torch, the device, the sandbox and the model's endpoint, or measure the profile of the device."""
    settings = load_settings()
    if profile:
        _profile(settings, out)
        return
    if out:
        raise UsageError("--out: belongs to --profile; give both")
    from filters.doctor import report
    from flows import llm_doctor

    lines = [*report(settings.filters), *llm_doctor.report(settings.llm)]
    for name, ok, detail in lines:
        typer.echo(f"{'ok  ' if ok else 'FAIL'}  {name}: {detail}")
    if not all(ok for _, ok, _ in lines):
        raise typer.Exit(3)


def _profile(settings: Settings, out: Path | None) -> None:
    """Print the figures of the device at hand as TOML; write them as well where a file is named."""
    from composer.profiles import profile_text
    from data.tables import replacing
    from filters.calibration import calibrate
    from filters.engine import Engine

    device = Engine(settings.filters, settings.policy).device
    text = profile_text(calibrate(device, _PROFILE_SECONDS, _tell))
    typer.echo(text)
    if out:
        with replacing(out) as temporary:
            temporary.write_text(text, encoding="utf-8")
        typer.echo(f'Use it with [composer] profile = "{out}"')


def _tell(text: str) -> None:
    print(f"opweaver: {text}", file=sys.stderr)
