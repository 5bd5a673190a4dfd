"""Every rule: composes in each of its layouts, and its source really runs."""

import math

import pytest
import torch

from composer.execution import bind, empty_inputs
from composer.plan import RUNNING, Plan
from composer.render import render
from composer.rule_composer import LAYOUTS
from composer.rules import RULES

SMALL = {"N": 2, "F": 24, "C": 16, "L": 10, "H": 24, "W": 16}


def small(plan: Plan) -> Plan:
    return plan.resized({name: SMALL[letter] for name, letter in plan.axes.items()})


def predicted_shape(plan: Plan) -> torch.Size:
    with torch.device("meta"):
        tensors = empty_inputs(plan)
        for step in plan.steps:
            tensors[RUNNING] = bind(step, plan.sizes)(tensors)
    return tensors[RUNNING].shape


def run(code: str) -> torch.Tensor:
    namespace: dict = {}
    exec(compile(code, "task.py", "exec"), namespace)
    model = namespace["Model"](*namespace["get_init_inputs"]()).eval()
    with torch.no_grad():
        return model(*namespace["get_inputs"]())


USES = [(rule, layout) for rule in RULES for layout in rule.layouts if layout in LAYOUTS]


@pytest.mark.parametrize(("rule", "layout"), USES, ids=lambda use: getattr(use, "operator", use))
def test_rule_composes_and_its_source_runs(chain, rule, layout):
    names = (["abs"] if rule.nonnegative else []) + [rule.operator.rpartition(".")[2]]
    for seed in range(3):
        plan = small(chain(layout, *names, seed=seed).plan())
        torch.manual_seed(seed)
        output = run(render(plan))
        assert output.shape == predicted_shape(plan)
        assert output.isfinite().all()
        assert output.numel() > 1
        assert output.std() > 0


def test_each_operator_has_one_rule():
    names = [rule.operator for rule in RULES]
    assert len(names) == len(set(names))
    assert len({name.rpartition(".")[2] for name in names}) == len(names)


def test_names_of_sizes_follow_the_axes(chain):
    draft = chain("NLF", "Linear", "sum", "Linear", seed=1)
    plan = draft.plan()
    assert list(plan.axes)[:3] == ["BATCH_SIZE", "LENGTH", "FEATURES"]
    assert {"OUT_FEATURES", "OUT_FEATURES_2"} <= set(plan.axes)
    assert math.prod(predicted_shape(small(plan))) == 2 * SMALL["F"]


def test_an_axis_that_an_operator_shortened_has_no_name(chain):
    assert chain("NCHW", "AvgPool2d", "mul") is None
    assert chain("NCHW", "AvgPool2d", "tanh") is not None
