"""Aliases agree with the names that the filters give to what ran."""

import pytest

from composer.rules import RULES
from filters.operators import canonical_name, signature_element
from ops_crawler.aliases import alias_group
from ops_crawler.crawl import crawl

OPERATORS = crawl()


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("torch.special.expit", "torch.sigmoid"),
        ("torch.nn.functional.sigmoid", "torch.sigmoid"),
        ("torch.relu", "torch.nn.functional.relu"),
        ("torch.relu_", "torch.nn.functional.relu"),
        ("torch.nn.functional.softmax", "torch.softmax"),
        ("torch.special.gammainc", "torch.igamma"),
        ("torch.special.psi", "torch.digamma"),
        ("torch.conv1d", "torch.nn.functional.conv1d"),
        ("torch.true_divide", "torch.div"),
        ("torch.det", "torch.linalg.det"),
        ("torch.linalg.matmul", "torch.matmul"),
        ("torch.nn.ReLU", "torch.nn.ReLU"),
    ],
)
def test_an_operator_has_one_canonical_name(name, group):
    assert alias_group(name) == group


def test_a_canonical_name_is_in_its_own_group():
    groups = {operator.alias_group for operator in OPERATORS}
    assert {group for group in groups if alias_group(group) != group} == set()


def test_the_filters_know_every_operator_that_is_kept_under_its_own_name():
    kept = [operator.name for operator in OPERATORS if operator.set_aside is None]
    assert {name: canonical_name(name) for name in kept if canonical_name(name) != name} == {}


def test_the_filters_call_an_alias_by_its_own_or_its_groups_name():
    aliases = [operator for operator in OPERATORS if operator.set_aside == "alias"]
    assert len(aliases) > 80
    assert {
        operator.name: (operator.alias_group, canonical_name(operator.name))
        for operator in aliases
        if canonical_name(operator.name) not in (operator.name, operator.alias_group)
    } == {}


def test_aliases_are_one_kind_of_operator_to_the_filters():
    assert {
        operator.name
        for operator in OPERATORS
        if operator.set_aside == "alias"
        and signature_element(operator.name) != signature_element(operator.alias_group)
    } == {"torch.orgqr", "torch.pinverse"}  # which the filters know by these names alone


def test_every_rule_of_the_composer_is_for_an_operator_that_is_kept():
    set_aside = {operator.name: operator.set_aside for operator in OPERATORS}
    assert {rule.operator for rule in RULES if set_aside.get(rule.operator, "unknown")} == set()
