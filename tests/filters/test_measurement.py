import dataclasses
import json

import pytest

from filters.measurement import Measurement, checked_facts
from filters.reasons import Reason, Stage


def test_json_gives_the_same_record(good):
    assert Measurement.from_json(good().to_json()) == good()


def test_unknown_facts_are_left_out_of_the_json():
    assert json.loads(Measurement(eager_ms=2.0).to_json()) == {"eager_ms": 2.0, "stages_done": []}


def test_lists_become_tuples_and_integers_pass_for_floats():
    facts = checked_facts({"input_shapes": [[2, 3], []], "eager_ms": 3})
    assert facts == {"input_shapes": ((2, 3), ()), "eager_ms": 3.0}
    assert type(facts["eager_ms"]) is float


def test_reasons_and_stages_are_texts():
    facts = checked_facts({"fault": Reason.TIMEOUT, "stages_done": [Stage.BUILD]})
    assert facts == {"fault": "timeout", "stages_done": ("build",)}
    assert type(facts["fault"]) is str


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ([], "facts are no JSON object but list"),
        ({"colour": 1}, "unknown facts: colour"),
        ({"eager_ms": "fast"}, "eager_ms should be float, is str"),
        ({"eager_ms": True}, "eager_ms should be float, is bool"),
        ({"graphs": 1.0}, "graphs should be int, is float"),
        ({"repeats_equal": 1}, "repeats_equal should be bool, is int"),
        ({"ops": "torch.relu"}, "ops should be a list, is str"),
        ({"ops": [1]}, "ops should be str, is int"),
        ({"input_shapes": [["2"]]}, "input_shapes should be int, is str"),
        ({"stages_done": None}, "stages_done should be a list, is NoneType"),
    ],
)
def test_facts_that_a_worker_cannot_have_measured(facts, message):
    with pytest.raises(ValueError, match=message):
        checked_facts(facts)


def test_facts_are_added_to_a_copy(good):
    facts = good()
    changed = facts.with_facts({"eager_ms": 7.0})
    assert (facts.eager_ms, changed.eager_ms) == (5.0, 7.0)
    assert dataclasses.replace(changed, eager_ms=5.0) == facts
