"""Which operators a request asks for: every kind gets its quota, and within a kind all take turns."""

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence

from composer.rule_composer import drawn_arity
from ops_crawler.operator import Operator

QUOTAS: Mapping[str, int] = {
    "activation": 4,
    "convolution": 4,
    "elementwise": 4,
    "linear algebra": 4,
    "normalization": 4,
    "pooling": 3,
    "reduction": 3,
}
"""Turns of a kind in each round of turns; 1 for all others. What fused layers of real models consist of."""

_DRAWS = 20
"""Draws for each further operator."""


class TooFewOperatorsError(ValueError):
    """The catalogue leaves nothing to ask a model for."""


class Assignment:
    """Deals operators; what an index gets depends on seed and operators alone."""

    def __init__(
        self,
        operators: Sequence[Operator],
        seed: int,
        fit: Callable[[Sequence[Operator]], bool] = lambda operators: True,
    ) -> None:
        usable = [
            one
            for one in operators
            if one.set_aside is None and one.usage is None and one.source != "transformers"  # whole layers
        ]
        if len(usable) < 2:
            raise TooFewOperatorsError(f"{len(usable)} operators to ask for; crawl the source `torch`")
        self._seed = seed
        self._fit = fit
        rng = self.rng("deal")
        self._decks = {
            kind: rng.sample(deck, len(deck))
            for kind in sorted({one.category for one in usable})
            if (deck := [one for one in usable if one.category == kind])
        }
        turns = [kind for kind in self._decks for _ in range(QUOTAS.get(kind, 1))]
        self._turns = rng.sample(turns, len(turns))

    def operators(self, index: int, count: int | None = None) -> list[Operator]:
        """Return the operators for an index; `count` in place of the drawn number.

        The first is dealt, the others are drawn among those that fit; fewer where none is found.
        """
        rng = self.rng(f"operators/{index}")
        count = drawn_arity(rng) if count is None else count
        chosen = [self._dealt(index)]
        for _ in range(_DRAWS * (count - 1)):
            if len(chosen) == count:
                break
            other = rng.choice(self._decks[rng.choice(self._turns)])
            if _same_as(other) not in map(_same_as, chosen) and self._fit([*chosen, other]):
                chosen.append(other)
        return chosen

    def _dealt(self, index: int) -> Operator:
        lap, place = divmod(index, len(self._turns))
        kind = self._turns[place]
        turn = lap * self._turns.count(kind) + self._turns[:place].count(kind)
        return self._decks[kind][turn % len(self._decks[kind])]

    def rng(self, purpose: str) -> random.Random:
        """Return a generator that is the same in every process."""
        return random.Random(hashlib.sha256(f"{self._seed}/llm/{purpose}".encode()).digest())


def _same_as(operator: Operator) -> str:
    return operator.alias_group or operator.name
