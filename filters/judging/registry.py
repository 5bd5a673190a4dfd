"""The filters in the order in which they are asked; the first that objects gives the reason."""

from collections.abc import Callable
from dataclasses import dataclass, fields

from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Stage
from filters.verdict import Claim, Finding

Filter = Callable[[Measurement, Policy, Claim], Finding | None]
"""A filter reads facts, thresholds and what the task claims to be; it touches no device."""

_FACTS = {field.name for field in fields(Measurement)}


@dataclass(frozen=True, slots=True)
class Registered:
    """One filter with its stage and the facts it cannot do without."""

    stage: Stage
    needs: tuple[str, ...]
    ask: Filter


FILTERS: list[Registered] = []


def filter_of(stage: Stage, *needs: str) -> Callable[[Filter], Filter]:
    """Register a filter. Fails at import for a fact that no measurement has."""
    unknown = set(needs) - _FACTS
    if unknown:
        raise TypeError(f"no such facts: {', '.join(sorted(unknown))}")

    def register(ask: Filter) -> Filter:
        FILTERS.append(Registered(stage, needs, ask))
        FILTERS.sort(key=lambda known: list(Stage).index(known.stage))
        return ask

    return register


def first_finding(
    measurement: Measurement,
    policy: Policy,
    claim: Claim,
    *,
    only: Stage | None = None,
    without: Stage | None = None,
) -> tuple[Stage, Finding] | None:
    """Return the first objection among the filters whose facts are known."""
    for known in FILTERS:
        if (only is not None and known.stage != only) or known.stage == without:
            continue
        if any(getattr(measurement, fact) is None for fact in known.needs):
            continue
        finding = known.ask(measurement, policy, claim)
        if finding is not None:
            return known.stage, finding
    return None


def missing_facts(measurement: Measurement, *, without: Stage | None = None) -> tuple[str, ...]:
    """Return the facts that some filter still needs."""
    needed = {fact: None for known in FILTERS if known.stage != without for fact in known.needs}
    return tuple(fact for fact in needed if getattr(measurement, fact) is None)
