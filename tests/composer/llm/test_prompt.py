import json
import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from composer.llm.assignment import Assignment, TooFewOperatorsError
from composer.llm.candidates import LlmComposer
from composer.llm.layer_plan import PlanFault, example_of, plan_of, schema_of, usable, wirings
from composer.llm.prompt import Prompt
from composer.llm.prompt_file import parts
from composer.llm.requests import Request
from composer.llm.settings import LlmSettings
from composer.profiles import built_in
from composer.render import render
from ops_crawler.crawl import survey
from ops_crawler.operator import Operator

PLANNED = "torch.nn.Conv2d torch.nn.GroupNorm torch.nn.Linear torch.sin torch.hypot torch.amax"


@pytest.fixture(scope="module")
def operators():
    return survey(("torch",)).operators


@pytest.fixture(scope="module")
def few(operators):
    return {one.name: one for one in operators if one.name in PLANNED.split()}


def prompt(operators, seed=0, profile="cpu", model="m", **settings):
    return Prompt(operators, built_in(profile), LlmSettings(**settings), model, seed)


def test_a_request_is_a_function_of_its_arguments_alone(operators):
    assert prompt(operators).request(7) == prompt(operators).request(7)
    others = [
        prompt(operators).request(8),
        prompt(operators, seed=1).request(7),
        prompt(operators[:900]).request(7),
        prompt(operators, profile="h200").request(7),
        prompt(operators, model="n").request(7),
        prompt(operators, mode="free").request(7),
        prompt(operators, temperature=0.5).request(7),
    ]
    assert len({prompt(operators).request(7).hash, *(other.hash for other in others)}) == 8


def test_the_prompt_holds_what_the_model_must_know(operators):
    system, user = prompt(operators, profile="h200").request(3).messages
    for part in ("class Model(nn.Module)", "get_init_inputs()", "1.5 to 15 ms", "4,295 MB", "No dropout"):
        assert part in system["content"]
    for operator in prompt(operators).operators(3):
        assert f"`{operator.name}" in user["content"]


def test_the_worked_examples_are_tasks_by_the_contract():
    examples = parts()["system"].split("```python\n")[1:]
    assert len(examples) == 2
    for example in examples:
        compile(example.partition("```")[0], "example", "exec")


def test_kinds_get_their_quota_and_operators_take_turns(operators):
    dealt = [Assignment(operators, 0).operators(index, 1)[0] for index in range(3 * 40)]
    counts = Counter(operator.category for operator in dealt)
    assert counts["convolution"] >= 3 * counts["fft"]
    convolutions = [operator.name for operator in dealt if operator.category == "convolution"]
    assert len(set(convolutions)) == len(convolutions[:13])


def test_no_operator_stands_twice_in_a_request(operators):
    assignment = Assignment(operators, 0)
    for index in range(60):
        names = sorted(one.alias_group or one.name for one in assignment.operators(index, 5))
        assert all(one != other for one, other in pairwise(names))


def test_whole_layers_of_transformers_are_no_operators_to_weave(operators):
    layer = Operator(name="transformers.models.x.Y", kind="module", signature="(a)", source="transformers")
    with pytest.raises(TooFewOperatorsError, match="0 operators to ask for"):
        Assignment([layer, replace(layer, name="transformers.models.x.Z")], 0)


def test_nothing_to_ask_for_is_told():
    with pytest.raises(TooFewOperatorsError, match="0 operators to ask for; crawl the source `torch`"):
        Assignment([], 0)


def test_a_schema_is_strict_and_offers_only_wirings_that_work(few):
    chosen = (few["torch.nn.Conv2d"], few["torch.nn.GroupNorm"])
    assert wirings(chosen) == (
        "NCHW -> torch.nn.Conv2d -> torch.nn.GroupNorm", "NCHW -> torch.nn.GroupNorm -> torch.nn.Conv2d",
    )  # fmt: skip

    def strict(schema):
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            assert all(map(strict, schema["properties"].values()))
        return True

    assert strict(schema_of(chosen))


def test_any_answer_that_fits_the_schema_is_a_layer_with_the_wanted_operators(few):
    rng = random.Random(0)
    for names in (("torch.nn.Conv2d", "torch.sin"), ("torch.nn.Linear", "torch.hypot"), ("torch.amax",)):
        chosen = [few[name] for name in names]
        for _ in range(3):
            plan = plan_of(json.dumps(example_of(chosen, rng)), chosen, built_in("cpu"), rng)
            assert sorted(plan.operators) == sorted(names)
            compile(render(plan), "plan", "exec")


def test_chosen_arguments_stand_in_the_code(few):
    chosen = [few["torch.nn.Conv2d"]]
    answer = {
        "wiring": "NCHW -> torch.nn.Conv2d",
        "sizes": {"C": 32, "H": 64, "W": 32},
        "arguments": {"torch.nn.Conv2d": {"out_channels": 96, "kernel_size": 5, "padding": 7}},
    }
    code = render(plan_of(f"```json\n{json.dumps(answer)}\n```", chosen, built_in("cpu"), random.Random(0)))
    for part in ("OUT_CHANNELS = 96", "CHANNELS = 32", "HEIGHT = 64", "kernel_size=5", "padding=0"):
        assert part in code


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("a layer", "no JSON object"),
        ("[" * 50_000 + "{}", "wiring"),
        (
            '{"wiring": "NF -> torch.sin -> torch.sin"}',
            "`wiring` is 'NF -> torch.sin -> torch.sin'; choose one of",
        ),
        ('{"wiring": []}', "`wiring` is []"),
    ],
)
def test_what_fits_no_schema_is_told_to_the_model(few, text, part):
    with pytest.raises(PlanFault) as fault:
        plan_of(text, [few["torch.sin"]], built_in("cpu"), random.Random(0))
    assert part in str(fault.value)


def test_a_layer_that_hardly_depends_on_its_input_is_no_plan(few):
    assert few["torch.sin"] in usable([few["torch.sin"]])
    assert all("amax -> torch.nn.GroupNorm" not in wiring for wiring in wirings(tuple(few.values())[:3]))


def test_a_conversation_goes_on_with_what_was_said():
    first = Request.of({"model": "m", "messages": [{"role": "user", "content": "a"}]})
    then = first.continued("said \ud800", "wrong")
    assert [message["content"] for message in then.messages] == ["a", "said \\ud800", "wrong"]
    assert (first.again().hash, first.again().draw) == (first.hash, 1)


def test_the_names_of_mode_free_are_read_from_the_first_line(few):
    composer = LlmComposer(list(few.values()), built_in("cpu"), LlmSettings(mode="free"), "m", 0)
    code = "# Operators: torch.sin, `torch.nn.Linear`; torch.sin\nclass Model: pass\n"
    reply = json.dumps({"choices": [{"message": {"content": code}}]}).encode()
    answered = composer.answered(0, composer.request(0), reply, 0)
    assert answered.candidate.requested_ops == ("torch.sin", "torch.nn.Linear")
