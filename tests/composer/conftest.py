"""Layers built from named operators, for tests of rules."""

import random
from collections.abc import Callable

import pytest

from composer.draft import Draft
from composer.drawing import follow
from composer.rules import RULES, Rule

Chain = Callable[..., Draft | None]


def rule_named(name: str) -> Rule:
    """Return the rule of a dotted name, or of one that ends so."""
    found = [rule for rule in RULES if rule.operator == name]
    found = found or [rule for rule in RULES if rule.operator.endswith("." + name)]
    (rule,) = found
    return rule


@pytest.fixture
def chain() -> Chain:
    """Return a function that drafts a layer: layout, operators; None where one does not fit."""

    def draw(layout: str, *names: str, seed: int = 0, dtype: str = "float32") -> Draft | None:
        draft = Draft(random.Random(seed), dtype)
        running = draft.start(layout, rule_named(names[0]).drawn)
        for name in names:
            after = follow(draft, running, rule_named(name))
            if after is None:
                return None
            running = after
        return draft

    return draw
