"""What `opweaver crawl` says of the layers lifted from transformers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from ops_crawler.operator import Operator

if TYPE_CHECKING:
    from ops_crawler.lifting.lift import Lifting

_NAMES_MAX = 20
"""Names that a crawl shows; the file that it writes says `not_frozen` of all of them."""


def tell_layers(operators: Sequence[Operator]) -> None:
    """Say how many layers are usable, and in what the installed library differs from the frozen layers."""
    from ops_crawler.lifting.frozen import frozen

    usable = {operator.alias_group for operator in operators if operator.set_aside is None}
    families = {name.split(".")[2] for name in usable}
    typer.echo(f"transformers: {len(usable):,} layers of {len(families)} model families stand alone")
    stored = frozen()
    frozen_names = {f"{layer.module}.{layer.name}" for layer in stored.layers}
    versions = f"transformers {operators[0].library_version}, layers of transformers {stored.library_version}"
    lost = sorted(frozen_names - usable)
    unknown = sorted(operator.name for operator in operators if operator.set_aside == "not_frozen")
    typer.echo(f"{versions}: {'' if lost or unknown else 'no '}differences")
    _names("frozen, but changed or gone here", lost, _NAMES_MAX)
    _names("new or changed, so not frozen", unknown, _NAMES_MAX)


def verify_layers() -> None:
    """Lift everything again and say in what that differs from the frozen layers.

    Raises InfrastructureError.
    """
    from flows.errors import InfrastructureError
    from ops_crawler.lifting.frozen import changes, unconfirmed
    from ops_crawler.lifting.lanes import LiftingError
    from ops_crawler.lifting.lift import counts

    try:
        lifting = _lifted_again()
        found = unconfirmed(changes(lifting))
    except LiftingError as error:
        raise InfrastructureError(f"--verify: {error}") from None
    families = {layer.family for layer in lifting.layers}
    typer.echo(
        f"lifted again: {len(lifting.layers):,} layers of {len(families)} model families give equal bits"
    )
    for reason, count in counts(lifting.refusals.values()).items():
        typer.echo(f"  {reason}: {count:,}")
    typer.echo(f"layers that differ from the frozen ones: {'see below' if found else 'none'}")
    for title, names in (
        ("new", found.new), ("gone", found.gone), ("changed", found.changed),
        ("refused now", found.refused), ("refused before", found.gained),
    ):  # fmt: skip
        _names(title, names)


def _lifted_again() -> "Lifting":
    from flows.progress import Progress
    from ops_crawler.lifting.lift import closures, jobs_of, lift

    progress = Progress()
    with progress.stage("lifting modules", len(jobs_of(closures()[0]))):
        return lift(lambda done, total: progress.advance())


def _names(title: str, names: Sequence[str], at_most: int | None = None) -> None:
    if names:
        more = f" and {len(names) - at_most:,} more" if at_most and len(names) > at_most else ""
        typer.echo(f"  {title} ({len(names):,}): {' '.join(names[:at_most])}{more}")
