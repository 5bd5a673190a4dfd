"""Charts as numbers: what is counted where. Drawing is left to the page.

Every chart carries its numbers, a caption and a sentence that stands for the picture, so that a reader who
cannot see it, or a browser without scripts, loses nothing.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_BINS = 25
_BINS_PER_DECADE = (4, 8, 16)
_BINS_WANTED = 15
_LABELS_MAX = 20


class Values(NamedTuple):
    """The values of one set, with the name that the reader knows it by."""

    name: str
    values: Sequence[float]


class Names(NamedTuple):
    """The names that the rows of one set carry, one tuple per row."""

    name: str
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One row of numbers: rows counted per bin or label, or their shares where sets are compared."""

    name: str
    numbers: tuple[float, ...]
    total: int
    """Rows behind all numbers together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """How values spread."""

    key: str
    title: str
    caption: str
    alt: str
    axis: str
    """What is counted, with its unit."""
    edges: tuple[float, ...]
    log: bool
    series: tuple[Series, ...]
    shares: bool
    band: tuple[float, float] | None = None
    """Values that the policy accepts."""
    rule: float | None = None
    """A value to compare with, such as a threshold."""
    kind: str = "histogram"

    @property
    def labels(self) -> list[str]:
        """Return the bins as text."""
        return [
            f"{figure(low)} to {figure(high)}" for low, high in zip(self.edges, self.edges[1:], strict=False)
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """How often names occur."""

    key: str
    title: str
    caption: str
    alt: str
    axis: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    shares: bool
    kind: str = "bars"


Chart = Histogram | Bars


def histogram(
    key: str,
    title: str,
    axis: str,
    sets: Sequence[Values],
    *,
    caption: str,
    log: bool = True,
    shares: bool = False,
    span: tuple[float, float] | None = None,
    band: tuple[float, float] | None = None,
    rule: float | None = None,
) -> Histogram | None:
    """Count values in common bins; None where no set has any. On a log axis only positive values count.

    `span` is always on the axis, whatever the values are.
    """
    sets = [Values(each.name, [value for value in each.values if value > 0 or not log]) for each in sets]
    sets = [each for each in sets if each.values]
    if not sets:
        return None
    everything = [*(span or ()), *(value for each in sets for value in each.values)]
    edges = _edges(min(everything), max(everything), log)
    series = tuple(
        _series(each.name, [int(n) for n in np.histogram(each.values, edges)[0]], len(each.values), shares)
        for each in sets
    )
    alt = f"{title}: " + "; ".join(_spread(each) for each in sets) + "."
    return Histogram(
        key=key, title=title, caption=caption, alt=alt, axis=axis, edges=edges, log=log,
        series=series, shares=shares, band=band, rule=rule,
    )  # fmt: skip


def bars(
    key: str,
    title: str,
    axis: str,
    sets: Sequence[Names],
    *,
    caption: str,
    shares: bool = False,
    order: Sequence[str] = (),
    published: Series | None = None,
) -> Bars | None:
    """Count in how many rows each name occurs.

    Names are those of `order`, else those with the largest share of rows in any set. None where no row
    carries a name. `published` is a series of shares known from elsewhere.
    """
    counts = {each.name: Counter(name for row in each.rows for name in set(row)) for each in sets}
    totals = {each.name: sum(bool(row) for row in each.rows) for each in sets}
    known = [name for name in counts if totals[name]]
    if not known:
        return None
    labels = list(order) or _most_frequent([(counts[name], totals[name]) for name in known])
    series = [
        _series(name, [counts[name][label] for label in labels], totals[name], shares) for name in known
    ]
    alt = f"{title}. " + " ".join(_listed(labels, each, shares) for each in series)
    return Bars(
        key=key, title=title, caption=caption, alt=alt, axis=axis, labels=tuple(labels),
        series=(*series, *([published] if published else [])), shares=shares,
    )  # fmt: skip


def remaining(
    key: str, title: str, axis: str, labels: Sequence[str], sets: Sequence[Values], *, caption: str
) -> Bars:
    """Show how many are left at each of some steps; the first step has all."""
    shares = len(sets) > 1
    series = tuple(
        _series(each.name, [int(n) for n in each.values], int(each.values[0]), shares) for each in sets
    )
    alt = f"{title}. " + " ".join(_listed(labels, each, shares) for each in series)
    return Bars(
        key=key, title=title, caption=caption, alt=alt, axis=axis, labels=tuple(labels),
        series=series, shares=shares,
    )  # fmt: skip


def number(value: float, shares: bool) -> str:
    """Return a count or a share as a reader writes it."""
    return f"{value:.1%}" if shares else f"{value:,.0f}"


def figure(value: float) -> str:
    """Return a measured value with three significant digits."""
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{float(f'{value:.3g}'):,.10g}"
    return f"{value:.2e}"


def _series(name: str, counts: Sequence[int], total: int, shares: bool) -> Series:
    numbers = tuple(round(count / total, 5) if shares else count for count in counts)
    return Series(name=name, numbers=numbers, total=total)


def _edges(low: float, high: float, log: bool) -> tuple[float, ...]:
    if not log:
        return tuple(float(edge) for edge in np.linspace(low, max(high, low + 1e-9), _BINS + 1))
    decades = math.log10(high / low)
    fine = next((n for n in _BINS_PER_DECADE if n * decades >= _BINS_WANTED), _BINS_PER_DECADE[-1])
    first = math.floor(math.log10(low) * fine)
    last = math.floor(math.log10(high) * fine) + 1
    return tuple(10 ** (step / fine) for step in range(first, last + 1))


def _spread(each: Values) -> str:
    low, middle, high = (figure(float(value)) for value in np.percentile(each.values, [5, 50, 95]))
    return (
        f"{each.name}, {len(each.values):,} values, median {middle}, 5th to 95th percentile {low} to {high}"
    )


def _listed(labels: Sequence[str], series: Series, shares: bool) -> str:
    """Return the numbers of one series as a sentence."""
    named = ", ".join(f"{label} {number(n, shares)}" for label, n in zip(labels, series.numbers, strict=True))
    return f"{series.name}: {named}."


def _most_frequent(counts: Sequence[tuple[Counter[str], int]]) -> list[str]:
    """Return the names with the largest share of rows in any set; ties in the order of the alphabet."""
    names = {name for counted, _ in counts for name in counted}
    share = {name: max(counted[name] / total for counted, total in counts) for name in names}
    return sorted(names, key=lambda name: (-share[name], name))[:_LABELS_MAX]
