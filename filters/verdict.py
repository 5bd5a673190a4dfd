"""The outcome of one candidate."""

from dataclasses import dataclass, field
from typing import Any, Literal

from filters.reasons import Reason, Stage

Outcome = Literal["accepted", "surplus", "rejected", "infrastructure"]


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
