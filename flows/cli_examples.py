"""An example for the `--help` of each command."""

import typer

EXAMPLES = {
    "run": "opweaver run --run-dir runs/first --count 100 --device cuda",
    "crawl": "opweaver crawl --out operators.parquet --source torch --source my_operators/",
    "compose": "opweaver compose --out candidates.parquet --count 1000 --seed 7",
    "filter": "opweaver filter candidates.parquet --out verdicts.parquet",
    "check": "opweaver check task.py --json",
    "audit": "opweaver audit ORG/NAME --out verdicts.parquet --static-only",
    "judge": "opweaver judge runs/first",
    "report": "opweaver report runs/first --compare other.parquet",
    "export": "opweaver export runs/first --format trl --out prompts",
    "publish": "opweaver publish runs/first --repo ORG/NAME --dry-run",
    "doctor": "opweaver doctor",
    "llm install": "opweaver llm install",
    "llm prompt": "opweaver llm prompt > prompt.md",
}


def add_to(app: typer.Typer, group: str = "") -> None:
    """Put the examples below the options of the commands that are registered, those of groups too."""
    for command in app.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        if example := EXAMPLES.get(f"{group}{name}"):
            command.epilog = f"Example: {example}"
    for inner in app.registered_groups:
        if inner.typer_instance:
            add_to(inner.typer_instance, f"{inner.name} ")
