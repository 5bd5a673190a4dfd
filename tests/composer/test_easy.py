"""The easy slice is what a small model can learn from, and none of KernelBench's own tasks."""

import pytest

from composer.easy import easy_rules
from composer.profiles import CPU
from composer.rule_composer import RuleComposer
from composer.rules import RULES
from ops_crawler.crawl import crawl


def test_easy_layers_are_elementwise_operators_and_reductions():
    names = {rule.operator for rule in easy_rules(RULES)}
    assert {"torch.erf", "torch.square", "torch.std"} <= names
    assert not names & {"torch.nn.Conv2d", "torch.nn.Linear", "torch.nn.LayerNorm", "torch.nn.MaxPool2d"}


def test_kernelbenchs_own_operators_are_left_out():
    names = {rule.operator for rule in easy_rules(RULES)}
    assert not names & {"torch.nn.functional.relu", "torch.sigmoid", "torch.tanh", "torch.mean", "torch.sum"}


def test_the_share_decides_how_many_layers_are_easy_and_changes_no_other():
    operators = crawl()
    plain, half, all_easy = (RuleComposer(operators, CPU, 2, easy_share=share) for share in (0.0, 0.5, 1.0))
    easy_names = {rule.operator for rule in easy_rules(RULES)}
    same = 0
    for index in range(12):
        (operator,) = all_easy.compose(index).requested_ops
        assert operator in easy_names
        codes = [composer.compose(index).code for composer in (plain, half, all_easy)]
        assert codes[1] in (codes[0], codes[2])
        same += codes[1] == codes[0]
    assert 2 <= same <= 10


def test_easy_layers_take_a_time_that_all_of_them_can_take():
    composer = RuleComposer(crawl(), CPU, 2, easy_share=1.0)
    for index in range(8):
        assert 1.2 < composer.compose(index).predicted_ms < 4.5


@pytest.mark.parametrize("steps", [-1, 0, 1])
def test_a_step_changes_sizes_and_nothing_else(steps):
    composer = RuleComposer(crawl(), CPU, 4)
    before, after = composer.compose(0), composer.compose(0, steps)
    assert after.requested_ops == before.requested_ops
    assert (after.code == before.code) == (steps == 0)
    assert after.ladder_steps == steps
