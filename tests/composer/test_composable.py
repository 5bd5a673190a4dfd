"""Every composable operator: a layer that contains it passes all filters on the CPU."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from composer.candidate import Candidate
from composer.profiles import CPU
from composer.rule_composer import RuleComposer
from composer.rules import RULES, Rule
from filters.engine import Engine
from filters.judge import judge
from filters.policy import Policy
from filters.screening import screened
from filters.settings import FilterSettings
from ops_crawler.operator import Operator

FAILING: dict[str, str] = {}
"""Operators of which no layer is accepted on the CPU, and why."""

LAYERS = 4
"""Layers of one operator before it counts as failing: times vary on a shared machine."""


class Insistent(RuleComposer):
    """Deals a wanted operator and one that changes with the seed."""

    def __init__(self, wanted: Rule, seed: int) -> None:
        operators = [Operator(name=rule.operator, kind=rule.kind, signature="unknown") for rule in RULES]
        super().__init__(operators, CPU, seed, dtypes={"float32": 1.0})
        self._wanted = wanted

    def _deal(self, index: int) -> tuple[Rule, Rule]:
        return self._wanted, self._dealt[index % len(self._dealt)]


def layers_with(rule: Rule) -> Iterator[Candidate]:
    """Yield layers that contain the operator, at most `LAYERS`."""
    found = 0
    for seed in range(3 * LAYERS):
        candidate = Insistent(rule, seed).compose(RULES.index(rule))
        if rule.operator in candidate.requested_ops and found < LAYERS:
            found += 1
            yield candidate


@pytest.mark.slow
def test_every_composable_operator_is_accepted_in_a_layer():
    policy = Policy()
    reasons: dict[str, str] = {}
    with Engine(FilterSettings(device="cpu", workers=2), policy) as engine, ThreadPoolExecutor(2) as pool:

        def accepted(rule: Rule) -> bool:
            for candidate in layers_with(rule):
                verdict = judge(candidate, screened(candidate, engine.measure(candidate)), policy)
                reasons[rule.operator] = f"{verdict.reason}: {verdict.evidence}"
                if verdict.outcome == "accepted":
                    return True
            return False

        passed = list(pool.map(accepted, RULES))
    failing = {rule.operator for rule, good in zip(RULES, passed, strict=True) if not good}
    assert {name: reasons.get(name) for name in failing - FAILING.keys()} == {}
