"""What every composed candidate must be, and that it depends on seed and index alone."""

import ast
import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from composer import rule_composer
from composer.candidate import Candidate
from composer.presets import PRESETS
from composer.profiles import CPU, H200
from composer.rule_composer import ARITY_SHARES, RuleComposer, TooFewRulesError, drawn_arity
from composer.rules import FAMILIES
from composer.sizes import ladder
from ops_crawler.crawl import crawl
from ops_crawler.operator import Operator

ROOT = Path(__file__).parents[2]
COUNT = 40

COMPOSE = """
import json
from composer.profiles import CPU
from composer.rule_composer import RuleComposer
from ops_crawler.crawl import crawl
composer = RuleComposer(crawl(), CPU, seed=5)
print(json.dumps([composer.compose(index).code for index in {indices}]))
"""


@pytest.fixture(scope="module")
def operators() -> list[Operator]:
    return crawl()


@pytest.fixture(scope="module")
def composer(operators: list[Operator]) -> RuleComposer:
    return RuleComposer(operators, CPU, seed=3)


@pytest.fixture(scope="module")
def candidates(composer: RuleComposer) -> list[Candidate]:
    return [composer.compose(index) for index in range(COUNT)]


def compose_elsewhere(indices: list[int], hash_seed: str) -> list[str]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", COMPOSE.format(indices=indices)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def constants(code: str) -> dict[str, int]:
    return {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(code).body
        if isinstance(node, ast.Assign)
    }


def test_same_seed_same_source_in_every_process_and_order():
    one = compose_elsewhere([0, 1, 2, 3, 4, 5], "1")
    other = compose_elsewhere([5, 4, 3, 2, 1, 0], "2")
    assert one == other[::-1]
    assert len(set(one)) == len(one)


def test_composing_leaves_torchs_generator_alone(operators):
    before = torch.get_rng_state()
    RuleComposer(operators, CPU, seed=1).compose(0)
    assert torch.equal(before, torch.get_rng_state())


def test_another_seed_and_another_profile_give_other_sources(operators):
    sources = {
        RuleComposer(operators, profile, seed).compose(1).code
        for profile, seed in ((CPU, 5), (CPU, 6), (H200, 5))
    }
    assert len(sources) == 3


def test_arity_follows_the_original():
    rng = random.Random(0)
    counts = Counter(drawn_arity(rng) for _ in range(20_000))
    for arity, percent in ARITY_SHARES.items():
        share = percent / sum(ARITY_SHARES.values())
        assert counts[arity] / 20_000 == pytest.approx(share, abs=0.006)


def test_candidates_say_who_asked_for_what(candidates, operators):
    known = {operator.name for operator in operators}
    for index, candidate in enumerate(candidates):
        assert (candidate.index, candidate.seed) == (index, 3)
        assert (candidate.composer, candidate.origin) == ("rules", "rules")
        assert set(candidate.requested_ops) <= known
        assert 1 <= len(candidate.requested_ops) <= 5


def test_few_candidates_share_a_signature(candidates):
    assert len({candidate.requested_ops for candidate in candidates}) >= 0.9 * COUNT


def test_axes_lie_on_the_ladder_or_are_those_of_a_model(candidates):
    of_models = {size for preset in PRESETS for sizes in preset.sizes.values() for size in sizes}
    for candidate in candidates:
        sizes = constants(candidate.code)
        axes = {size for name, size in sizes.items() if size > 48 or name == "BATCH_SIZE"}
        assert axes <= set(ladder()) | of_models, candidate.code


def test_a_hundred_layers_hold_many_operators_and_none_often(composer):
    uses = Counter(name for index in range(100) for name in composer.compose(index).requested_ops)
    assert len(uses) >= 120
    assert max(uses.values()) <= 0.05 * uses.total()


def test_every_stretch_of_the_deal_holds_every_large_family(composer):
    for start in range(0, 300, 50):
        dealt = {rule.operator for rule in composer._dealt[start : start + 50]}
        for rules in FAMILIES.values():
            if len(rules) >= 16 and len(dealt) == 50:
                assert dealt & {rule.operator for rule in rules}


def test_kinds_of_layers(composer):
    codes = [composer.compose(index).code for index in range(100, 160)]
    assert any(join in code for code in codes for join in ("x * gate", "x + residual"))
    for what in ("torch.randint(", "dtype=torch.bfloat16", "DEPTH = ", "NUM_HEADS"):
        assert any(what in code for code in codes), what


def test_dtypes_follow_the_settings(operators):
    composer = RuleComposer(operators, CPU, seed=2, dtypes={"float16": 1.0})
    for index in range(6):
        code = composer.compose(index).code
        assert "dtype=torch.float16" in code
        assert code.count("torch.randn(") <= code.count("dtype=torch.float16")


def test_sources_are_plain_modules_without_literal_device_or_comment(candidates):
    for candidate in candidates:
        names = [node.name for node in ast.parse(candidate.code).body if hasattr(node, "name")]
        assert names == ["Model", "get_inputs", "get_init_inputs"]
        assert not any(word in candidate.code for word in ("cuda", "cpu", "#", '"""'))
        assert candidate.code.count("device") == 2 * candidate.code.count("device=x.device")


def test_lines_are_short_enough_to_read(candidates):
    assert max(len(line) for candidate in candidates for line in candidate.code.splitlines()) <= 110


def test_a_rule_without_its_operator_is_not_used(operators):
    few = [op for op in operators if op.name in ("torch.nn.Mish", "torch.erf", "torch.sin", "torch.hypot")]
    composer = RuleComposer(few, CPU, seed=0)
    used = {name for index in range(12) for name in composer.compose(index).requested_ops}
    assert used <= {operator.name for operator in few}


def test_operators_without_any_rule_are_refused_in_one_line(operators):
    with pytest.raises(TooFewRulesError, match="none of the 1 operators") as error:
        RuleComposer([op for op in operators if op.name == "torch.nn.FractionalMaxPool2d"], CPU, seed=0)
    assert "\n" not in str(error.value)


def test_an_eager_time_out_of_reach_is_drawn_anew_before_operators_are_dropped(operators, monkeypatch):
    composer = RuleComposer(operators, H200, seed=3)
    wanted = iter([1e6] * 2)
    drawn = rule_composer.wanted_seconds
    monkeypatch.setattr(rule_composer, "wanted_seconds", lambda rng: next(wanted, None) or drawn(rng))
    candidate = composer.compose(1)
    assert next(wanted, None) is None
    assert len(candidate.requested_ops) == len(RuleComposer(operators, H200, seed=3).compose(1).requested_ops)


def test_operators_that_refuse_the_probes_sizes_are_replaced(operators, monkeypatch):
    composer = RuleComposer(operators, CPU, seed=3)
    follow, calls = rule_composer.follow, []

    def refusing_at_first(*args, **kwargs):
        calls.append(args)
        if len(calls) <= 3:
            raise RuntimeError("Padding size should be less than the corresponding input dimension")
        return follow(*args, **kwargs)

    monkeypatch.setattr(rule_composer, "follow", refusing_at_first)
    assert composer.compose(0).code
    assert len(calls) > 3
