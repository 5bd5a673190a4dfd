"""The command that lists operators: `crawl`."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from flows.cli_layers import tell_layers, verify_layers
from flows.settings import load_settings
from ops_crawler.operator import Operator

SOURCE_HELP = (
    "Where operators come from: torch, transformers, a name registered under opweaver.sources, "
    "package.module:object or a folder of .py files. Give it once for each; without it, torch."
)
_USABLE = "not set aside"
_TRANSFORMERS = "transformers"


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command(rich_help_panel="Make a dataset")(crawl)


def crawl(
    out: Annotated[Path, typer.Option(help="Parquet file to write.")],
    source: Annotated[list[str] | None, typer.Option(help=SOURCE_HELP)] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Execute all example calls again, lift all layers anew.")
    ] = False,
) -> None:
    """List the operators of the installed libraries, and those of your own."""
    settings = load_settings(options={"sources": tuple(source)} if source else {})
    from data.files import write_operators
    from flows.composing import operators_of

    operators = operators_of(settings)
    write_operators(out, operators)
    show_operators(operators)
    of_torch = [operator for operator in operators if operator.source == "torch"]
    of_transformers = [operator for operator in operators if operator.source == "transformers"]
    _tell_differences(of_torch)
    if of_transformers:
        tell_layers(of_transformers)
    if verify and of_torch:
        _verify(of_torch)
    if verify and of_transformers:
        verify_layers()
    typer.echo(f"{len(operators):,} operators: {out}")


def show_operators(operators: Sequence[Operator]) -> None:
    """Print three tables over the same operators; the sums of all three agree."""
    from flows.summary import OUT

    OUT.print(_table(operators, "module", "kind", lambda op: (_module(op), op.kind)))
    OUT.print(_table(operators, "category", "", lambda op: (op.category, "")))
    reasons = Table(title="\nWhy operators are set aside", title_justify="left")
    reasons.add_column("reason")
    reasons.add_column("count", justify="right")
    counts = Counter(operator.set_aside or _USABLE for operator in operators)
    for reason, count in sorted(counts.items(), key=lambda each: (each[0] == _USABLE, -each[1], each[0])):
        reasons.add_row(reason, f"{count:,}")
    reasons.add_row("sum", f"{len(operators):,}", style="bold")
    OUT.print(reasons)


def _module(operator: Operator) -> str:
    """Return where an operator lives; the hundreds of modules of transformers are one."""
    return _TRANSFORMERS if operator.source == "transformers" else operator.name.rpartition(".")[0]


def _table(
    operators: Sequence[Operator], first: str, second: str, key: Callable[[Operator], tuple[str, str]]
) -> Table:
    table = Table(title=f"\nOperators by {first}", title_justify="left")
    names = [first, second] if second else [first]
    for name in names:
        table.add_column(name)
    for name in ("set aside", _USABLE, "with example call", "sum"):
        table.add_column(name, justify="right")
    groups: dict[tuple[str, str], list[Operator]] = {}
    for operator in operators:
        groups.setdefault(key(operator), []).append(operator)
    for group, members in sorted(groups.items()):
        table.add_row(*group[: len(names)], *_counts(members))
    table.add_row("sum", *[""] * (len(names) - 1), *_counts(operators), style="bold")
    return table


def _counts(operators: Iterable[Operator]) -> list[str]:
    operators = list(operators)
    usable = [operator for operator in operators if operator.set_aside is None]
    witnessed = sum(operator.witness is not None for operator in usable)
    return [f"{n:,}" for n in (len(operators) - len(usable), len(usable), witnessed, len(operators))]


def _tell_differences(operators: Sequence[Operator]) -> None:
    """Say in what the installed torch differs from the one that the example calls were made with."""
    from ops_crawler.catalogue import differences, frozen

    if not operators:
        return
    versions = f"torch {operators[0].library_version}, catalogue of torch {frozen().torch_version}"
    found = differences(operators)
    typer.echo(f"{versions}: {'' if found else 'no '}differences")
    for kind, names in (("new", found.new), ("gone", found.gone), ("changed", found.changed)):
        if names:
            typer.echo(f"  {kind} ({len(names)}): {' '.join(names)}")


def _verify(operators: Sequence[Operator]) -> None:
    from ops_crawler.witnesses.verification import unconfirmed

    names = unconfirmed(operators)
    typer.echo(f"example calls that give something else here ({len(names)}): {' '.join(names) or 'none'}")
