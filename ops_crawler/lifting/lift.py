"""Lift every layer class of the installed transformers, several families at once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ops_crawler.lifting.closures import all_layer_classes, closure_of
from ops_crawler.lifting.kept import Kept
from ops_crawler.lifting.lanes import outcomes
from ops_crawler.lifting.lifted import LiftedLayer, layer_from
from ops_crawler.lifting.reasons import NotLiftedError

MODULE_SECONDS = 120.0
"""Limit for one modeling module on either side."""
_TRIED_PER_CLOSURE = 3
"""Classes of one closure that are tried; the first that succeeds, in the order of modules, stands for all."""

Name = tuple[str, str]
"""Module and class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why one class is not lifted."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifting:
    """What became of every layer class of the library."""

    layers: tuple[LiftedLayer, ...]
    """One for each closure that could be lifted, sorted by module and name."""
    refusals: Mapping[Name, Refusal]
    """All other classes."""


@cache
def closures() -> tuple[dict[Name, str], dict[Name, Refusal]]:
    """Return the digest of each layer class's closure, and the classes that have none."""
    digests: dict[Name, str] = {}
    refusals: dict[Name, Refusal] = {}
    for name in all_layer_classes():
        try:
            digests[name] = closure_of(*name).digest
        except NotLiftedError as error:
            refusals[name] = Refusal(reason=error.reason, detail=error.detail)
    return digests, refusals


def lift(
    advance: Callable[[int, int], None] = lambda done, total: None,
    only: str = "",
    kept: Kept | None = None,
    patience: float = 1.0,
) -> Lifting:
    """Return all layers; `advance` is told after each module, `only` limits to modules that contain it.

    What is in `kept` is not done again, and what is done is put there. `patience` multiplies all limits of
    time.
    """
    digests, unread = closures()
    jobs = {module: names for module, names in jobs_of(digests).items() if only in module}
    found = lift_classes(jobs, advance, kept=kept, patience=patience)
    layers: list[LiftedLayer] = []
    refusals = {name: refusal for name, refusal in unread.items() if only in name[0]}
    for names in _by_closure(digests):
        outcomes = [found[name] for name in names if name in found]
        first = next((one for one in outcomes if isinstance(one, LiftedLayer)), None)
        layers += [first] if first else []
        refusals |= _refused(names, found, first) if outcomes else {}
    ordered = sorted(layers, key=lambda layer: (layer.module, layer.name))
    return Lifting(layers=tuple(ordered), refusals=dict(sorted(refusals.items())))


def jobs_of(digests: Mapping[Name, str]) -> dict[str, list[str]]:
    """Return the classes that are tried, by module: a few of each closure."""
    jobs: dict[str, list[str]] = defaultdict(list)
    tried = {name for names in _by_closure(digests) for name in names[:_TRIED_PER_CLOSURE]}
    for module, cls in sorted(tried):
        jobs[module].append(cls)
    return dict(jobs)


def _by_closure(digests: Mapping[Name, str]) -> list[list[Name]]:
    classes: dict[str, list[Name]] = defaultdict(list)
    for name, digest in digests.items():
        classes[digest].append(name)
    return list(classes.values())


def _refused(
    names: Sequence[Name], found: Mapping[Name, LiftedLayer | Refusal], first: LiftedLayer | None
) -> dict[Name, Refusal]:
    """Return why the classes of one closure, but for the layer that stands for it, are not listed."""
    if first:
        same = Refusal(reason="same_closure", detail=f"{first.module}.{first.name}")
        return {name: same for name in names if name != (first.module, first.name)}
    said = {name: one for name in names if isinstance(one := found.get(name), Refusal)}
    last = next(iter(said.values()))
    return {name: said.get(name, last) for name in names}


def lift_classes(
    jobs: Mapping[str, list[str]],
    advance: Callable[[int, int], None] = lambda done, total: None,
    seconds: float = MODULE_SECONDS,
    kept: Kept | None = None,
    patience: float = 1.0,
) -> dict[Name, LiftedLayer | Refusal]:
    """Return what becomes of these classes, given by module.

    `seconds` limits each module on either side; `patience` multiplies that and the limits for its models.
    """
    found: dict[Name, LiftedLayer | Refusal] = {}
    waiting = dict(jobs)
    for module, names in jobs.items():
        results = kept.get(module, names) if kept else None
        if results is not None:
            found |= {(module, one["name"]): _outcome(one) for one in results}
            del waiting[module]
    for module, results in outcomes(waiting, seconds * patience, patience):
        if kept:
            kept.put(module, jobs[module], results)
        found |= {(module, one["name"]): _outcome(one) for one in results}
        del waiting[module]
        advance(len(jobs) - len(waiting), len(jobs))
    return found


def _outcome(fields: Mapping[str, Any]) -> LiftedLayer | Refusal:
    if "layer" in fields:
        return layer_from(fields["layer"])
    return Refusal(reason=fields["reason"], detail=fields["detail"])


def counts(refusals: Iterable[Refusal]) -> dict[str, int]:
    """Return how many classes have each reason."""
    found: dict[str, int] = defaultdict(int)
    for refusal in refusals:
        found[refusal.reason] += 1
    return dict(sorted(found.items(), key=lambda each: -each[1]))
