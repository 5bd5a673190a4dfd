"""Which tasks of a set repeat an earlier one?

Equal canonical form, or equal ordered signature with near-equal structure. Of a group the lowest index
stays, so the outcome does not depend on the order in which tasks were measured.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from filters.similarity.sequences import Encoded, operator_similarities

NEAR_EQUAL = 0.95
"""Operator-aware similarity above which two tasks with one signature are the same task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMember:
    """What of a task is compared with the rest of its set."""

    index: int
    family_id: str
    signature: Sequence[str]
    """Executed, or read from the source, but the same way for all members."""
    sequence: Encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The earlier task that one repeats, and how that was seen."""

    of: int
    how: Literal["canonical_form", "signature"]
    score: float | None = None
    """Operator-aware similarity, for `signature`."""


def duplicates(members: Iterable[SetMember]) -> dict[int, Repeat]:
    """Return, by index, the tasks that repeat one which stays; every `of` is a task that stays."""
    first_of_family: dict[str, int] = {}
    kept_by_signature: dict[tuple[str, ...], list[SetMember]] = defaultdict(list)
    repeats: dict[int, Repeat] = {}
    for member in sorted(members, key=lambda member: member.index):
        original = first_of_family.get(member.family_id)
        if original is not None:
            repeats[member.index] = Repeat(of=original, how="canonical_form")
            continue
        kept = kept_by_signature[tuple(member.signature)]
        near = _nearest(member, kept) if member.signature else None
        if near is not None:
            repeats[member.index] = near
        else:
            kept.append(member)
        first_of_family[member.family_id] = near.of if near is not None else member.index
    return repeats


def _nearest(member: SetMember, kept: Sequence[SetMember]) -> Repeat | None:
    """Return the earliest kept task of near-equal structure."""
    if not kept:
        return None
    scores = operator_similarities([member.sequence], [other.sequence for other in kept], NEAR_EQUAL)[0]
    for other, score in zip(kept, scores, strict=True):
        if score > NEAR_EQUAL:
            return Repeat(of=other.index, how="signature", score=round(float(score), 4))
    return None
