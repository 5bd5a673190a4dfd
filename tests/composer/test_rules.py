"""Every rule: composes in each of its layouts, and its source really runs."""

import math

import pytest
import torch

from composer.execution import bind, empty_inputs
from composer.plan import Plan
from composer.render import render
from composer.rules import RULES
from filters.operators import label_of_name
from filters.similarity import shipped_reference, static_signature

SMALL = {
    "N": 6, "F": 32, "C": 16, "L": 10, "D": 8, "H": 12, "W": 14, "A": 4, "E": 16, "P": 5, "T": 9, "V": 40
}  # fmt: skip


def small(plan: Plan) -> Plan:
    return plan.resized({name: SMALL[letter] for name, letter in plan.axes.items()})


def predicted(plan: Plan) -> torch.Tensor:
    with torch.device("meta"):
        tensors = empty_inputs(plan)
        for step in plan.steps:
            tensors[step.target] = bind(step, plan.sizes)(tensors)
    return tensors[plan.steps[-1].target]


def run(code: str) -> torch.Tensor:
    namespace: dict = {}
    exec(compile(code, "task.py", "exec"), namespace)
    model = namespace["Model"](*namespace["get_init_inputs"]()).eval()
    with torch.no_grad():
        return model(*namespace["get_inputs"]())


USES = [(rule, layout) for rule in RULES for layout in rule.layouts if layout != "N"]


@pytest.mark.parametrize(("rule", "layout"), USES, ids=lambda use: getattr(use, "operator", use))
def test_rule_composes_and_its_source_runs(chain, rule, layout):
    plan = small(chain(layout, rule.operator, seed=len(rule.operator + layout)).plan())
    torch.manual_seed(0)
    output = run(render(plan))
    wanted = predicted(plan)
    assert (output.shape, output.dtype) == (wanted.shape, wanted.dtype), render(plan)
    assert output.isfinite().all(), render(plan)
    assert output.numel() > 1
    assert output.std() > 0


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.half], ids=lambda rule: rule.operator)
def test_rule_composes_in_a_half_type(chain, rule):
    plan = small(chain(rule.starts()[0], rule.operator, dtype="bfloat16").plan())
    output = run(render(plan))
    assert output.dtype in (torch.bfloat16, torch.int64), render(plan)
    assert output.isfinite().all()


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.alone], ids=lambda rule: rule.operator)
def test_a_lone_operator_is_no_task_of_kernelbench(chain, rule):
    code = render(chain(rule.starts()[0], rule.operator).plan())
    signature = static_signature(code)
    assert shipped_reference().same_signature(signature, executed=True) is None
    assert shipped_reference().same_signature(signature, executed=False) is None


def test_names_of_operators_are_canonical():
    assert [rule.operator for rule in RULES if label_of_name(rule.operator) != rule.operator] == []


def test_each_operator_has_one_rule():
    names = [rule.operator for rule in RULES]
    assert len(names) == len(set(names))


def test_names_of_sizes_follow_the_axes(chain):
    draft = chain("NLF", "Linear", "sum", "Linear", seed=1)
    plan = draft.plan()
    assert list(plan.axes)[:3] == ["BATCH_SIZE", "LENGTH", "FEATURES"]
    assert {"OUT_FEATURES", "OUT_FEATURES_2"} <= set(plan.axes)
    assert math.prod(predicted(small(plan)).shape) == SMALL["N"] * SMALL["F"]


def test_an_axis_that_an_operator_shortened_has_no_name(chain):
    assert chain("NCHW", "AvgPool2d", "mul") is None
    assert chain("NCHW", "AvgPool2d", "tanh") is not None
