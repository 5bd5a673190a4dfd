"""Layers built from named operators, for tests of rules."""

import random
from collections.abc import Callable

import pytest

from composer.draft import Draft
from composer.drawing import follow
from composer.rules import RULES

Chain = Callable[..., Draft | None]


@pytest.fixture
def chain() -> Chain:
    """Return a function that drafts a layer: layout, short operator names; None where one does not fit."""

    def draw(layout: str, *names: str, seed: int = 0) -> Draft | None:
        draft = Draft(random.Random(seed))
        running = draft.start(layout)
        for name in names:
            (rule,) = [rule for rule in RULES if rule.operator.rpartition(".")[2] == name]
            after = follow(draft, running, rule)
            if after is None:
                return None
            running = after
        return draft

    return draw
