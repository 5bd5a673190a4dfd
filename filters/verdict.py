"""The outcome of one candidate."""

from dataclasses import dataclass, field
from typing import Any, Literal

from filters.reasons import Reason, Stage

Outcome = Literal["accepted", "surplus", "rejected", "infrastructure"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a task says of itself; filters hold the facts against it."""

    requested_ops: tuple[str, ...] = ()
    """Operators that must have run; empty where nothing was asked for."""
    whole_layer: bool = False
    """A layer lifted from a library: its label is its class name, its operators are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one filter objects to, with the evidence that a reader needs to believe it."""

    reason: Reason
    evidence: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Exactly one per planned candidate; the four outcomes add up to the plan."""

    index: int
    id: str
    outcome: Outcome
    reason: Reason
    """`accepted` for accepted and surplus rows."""
    stage: Stage | None = None
    """Where the reason was found, None for accepted rows."""
    evidence: dict[str, Any] = field(default_factory=dict)
