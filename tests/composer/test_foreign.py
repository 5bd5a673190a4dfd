"""Operators of the user's own in composed layers."""

import ast
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from composer.profiles import CPU
from composer.rule_composer import OPERATORS_MAX, RuleComposer, TooFewRulesError
from composer.rules.foreign import own_rules
from composer.values import normal
from ops_crawler.crawl import crawl
from ops_crawler.operator import Operator
from ops_crawler.own import own_operator

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_operators"


@pytest.fixture(scope="module")
def own() -> list[Operator]:
    sys.path.append(str(EXAMPLE))
    try:
        return crawl(["own_operators:OwnOperators"])
    finally:
        sys.path.remove(str(EXAMPLE))


def shrunken(code: str) -> str:
    """Return the task at sizes that any machine can run at once."""
    lines = []
    for line in code.splitlines():
        name, equals, value = line.partition(" = ")
        if equals and name.isupper() and value.isdigit() and not name.startswith("KERNEL"):
            line = f"{name} = {2 if name == 'BATCH_SIZE' else 16}"
        lines.append(line)
    return "\n".join(lines)


def run(code: str) -> torch.Tensor:
    namespace: dict = {}
    exec(compile(code, "task.py", "exec"), namespace)
    with torch.no_grad():
        return namespace["Model"](*namespace["get_init_inputs"]()).eval()(*namespace["get_inputs"]())


@pytest.fixture(scope="module")
def candidates(own):
    composer = RuleComposer(own, CPU, seed=1)
    return [composer.compose(index) for index in range(10)]


def test_tasks_carry_the_text_of_the_operators_and_run(candidates, own):
    texts = {operator.name: operator.usage.code.split("\n\n\n")[-1].strip() for operator in own}
    for candidate in candidates:
        for name in candidate.source_path.split(", "):
            assert texts[name] in candidate.code
        assert run(shrunken(candidate.code)).isfinite().all()


def test_every_own_operator_is_used(candidates, own):
    used = {name for candidate in candidates for name in candidate.source_path.split(", ")}
    assert used == {operator.name for operator in own}


def test_only_operators_of_torch_are_requested_by_name(candidates):
    for candidate in candidates:
        assert candidate.requested_ops == ()
        assert candidate.source_license == "Apache-2.0"


def test_a_licence_is_known_only_where_every_own_operator_names_one(own):
    from own_operators.vision import LocalContrast, merge_scales

    some = [
        own_operator(LocalContrast, layouts=("NCHW",), license="MIT"),
        own_operator(merge_scales, layouts=("NCHW",), inputs=("NCHW",)),
    ]
    composer = RuleComposer(some, CPU, seed=0)
    found = {one.source_path: one.source_license for one in map(composer.compose, range(12))}
    licensed, unlicensed = (operator.name for operator in some)
    assert found[licensed] == "MIT"
    mixed = [path for path in found if licensed in path and unlicensed in path]
    assert mixed, "no task holds both operators"
    assert all(found[path] is None for path in mixed)


def test_own_operators_count_as_what_runs_inside(candidates, own):
    inside = {operator.name: len(operator.usage.runs) for operator in own}
    for candidate in candidates:
        assert sum(inside[name] for name in candidate.source_path.split(", ")) <= OPERATORS_MAX


def test_definitions_and_imports_stand_once_and_before_the_model(candidates):
    for candidate in candidates:
        tree = ast.parse(candidate.code)
        names = [node.name for node in tree.body if hasattr(node, "name")]
        assert len(names) == len(set(names))
        assert names[-3:] == ["Model", "get_inputs", "get_init_inputs"]
        imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert imports[:2] == ["import torch", "import torch.nn as nn"]
        assert len(imports) == len(set(imports))


def test_beside_torch_every_other_pair_begins_with_an_own_operator(own):
    composer = RuleComposer([*crawl(), *own], CPU, seed=0)
    firsts = [composer._deal(index)[0] for index in range(10)]
    assert {rule.operator for rule in firsts[::2]} == {operator.name for operator in own}
    mixed = [composer.compose(index) for index in (0, 2, 4)]
    assert any(candidate.source_path and candidate.requested_ops for candidate in mixed)


def test_operators_of_torch_are_composed_as_without_own_ones():
    torchs = crawl()
    assert RuleComposer(torchs, CPU, seed=0).compose(1).source_path is None


def test_a_text_whose_source_is_not_loaded_is_never_used(own):
    strangers = [
        replace(operator, usage=replace(operator.usage, code="raise SystemExit('executed')"))
        for operator in own
    ]
    assert own_rules(strangers) == ()
    with pytest.raises(TooFewRulesError, match="can be composed"):
        RuleComposer(strangers, CPU, seed=0)


def test_values_after_an_own_operator_come_from_calling_it(own):
    rules = {rule.operator.rpartition(".")[2]: rule for rule in own_rules(own)}
    before = torch.get_rng_state()
    result = rules["FusedRMSNorm"].transfer.apply(7 * normal(), 1)
    assert float(result.square().mean().sqrt()) == pytest.approx(1.0, abs=0.1)
    assert result.shape == normal().shape
    assert torch.equal(before, torch.get_rng_state())


def test_an_operator_that_refuses_the_sizes_of_a_layer_is_drawn_again(own, monkeypatch):
    from own_operators import vision

    def picky(self, x):
        if x.shape[1] in (80, 112, 176, 256):
            raise ValueError("no such channels")
        return torch.nn.functional.avg_pool2d(x, 3, 1, 1) - x

    monkeypatch.setattr(vision.LocalContrast, "forward", picky)
    contrast = [operator for operator in own if operator.name.endswith("LocalContrast")]
    codes = [RuleComposer(contrast, CPU, seed=seed).compose(0).code for seed in range(3)]
    channels = [int(code.partition("CHANNELS = ")[2].split()[0]) for code in codes]
    assert max(channels) < 80
