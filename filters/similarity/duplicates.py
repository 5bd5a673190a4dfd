"""Which tasks of a set repeat an earlier one?

Equal canonical form, or equal ordered signature with near-equal structure. Of a group the lowest index
stays, so the outcome does not depend on the order in which tasks were measured.
"""

import hashlib
from array import array
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


class Repeats:
    """Takes the tasks of a set one by one, in the order of their index; keeps little of each.

    About 0.7 kB stay of a task that is no repeat; the time for one grows with the tasks that have its
    signature, not with the set.
    """

    def __init__(self) -> None:
        self._first_of_family: dict[bytes, int] = {}
        self._kept_by_signature: dict[bytes, list[tuple[int, Encoded]]] = defaultdict(list)

    def add(self, member: SetMember) -> Repeat | None:
        """Return which task that stays is repeated by this one; None if it stays itself."""
        family = _digest(member.family_id)
        original = self._first_of_family.get(family)
        if original is not None:
            return Repeat(of=original, how="canonical_form")
        kept = self._kept_by_signature[_digest("\n".join(member.signature))]
        near = _nearest(member, kept) if member.signature else None
        if near is None and member.signature:
            kept.append((member.index, array("I", member.sequence)))
        self._first_of_family[family] = near.of if near is not None else member.index
        return near


def duplicates(members: Iterable[SetMember]) -> dict[int, Repeat]:
    """Return, by index, the tasks that repeat one which stays; every `of` is a task that stays."""
    repeats = Repeats()
    found = ((member.index, repeats.add(member)) for member in sorted(members, key=lambda each: each.index))
    return {index: repeat for index, repeat in found if repeat is not None}


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).digest()


def _nearest(member: SetMember, kept: Sequence[tuple[int, Encoded]]) -> Repeat | None:
    """Return the earliest kept task of near-equal structure."""
    if not kept:
        return None
    sequences = [sequence for _, sequence in kept]
    scores = operator_similarities([array("I", member.sequence)], sequences, NEAR_EQUAL)[0]
    for (index, _), score in zip(kept, scores, strict=True):
        if score > NEAR_EQUAL:
            return Repeat(of=index, how="signature", score=round(float(score), 4))
    return None
