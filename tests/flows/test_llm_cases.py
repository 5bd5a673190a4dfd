"""The shared cases of replies: each ends with the verdict that is right for it."""

import importlib.util
import json
from pathlib import Path

import pytest

from composer.candidate import Candidate
from composer.llm.replies import code_of
from filters.policy import Policy
from filters.reasons import Reason, Stage
from flows.pipeline import verdicts_of

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases"
RIGHT = {
    "rp_custom_kernel_inside": Reason.FORBIDDEN,
    "rp_deep_nesting": Reason.SYNTAX,
    "rp_defined_twice": Reason.AMBIGUOUS_CODE,
    "rp_draft_then_final": Reason.NEEDS_MEASUREMENT,
    "rp_huge_integer": Reason.SYNTAX,
    "rp_json_wrapped": Reason.NEEDS_MEASUREMENT,
    "rp_kernelbook_dialect": Reason.CONTRACT,
    "rp_mixed_tabs_and_spaces": Reason.SYNTAX,
    "rp_nul_byte": Reason.SYNTAX,
    "rp_refusal_text": Reason.NO_CODE,
    "rp_split_over_blocks": Reason.NEEDS_MEASUREMENT,
    "rp_two_models_in_one_block": Reason.AMBIGUOUS_CODE,
    "rp_unicode_line_separators": Reason.NEEDS_MEASUREMENT,
    "rp_usage_example_last": Reason.NEEDS_MEASUREMENT,
}
"""Good ones pass everything that the text shows, and only their measurement is missing."""

needs_cases = pytest.mark.skipif(not CASES.exists(), reason="the shared cases are not in ../shared/cases")


def case(name):
    spec = importlib.util.spec_from_file_location(name, CASES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reply_of(module):
    """Return the chat completion of a case; two cases are the module that a model writes."""
    if hasattr(module, "payload"):
        return module.payload()
    content = f"```python\n{Path(module.__file__).read_text(encoding='utf-8')}```"
    return {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": content}}]}


def judged(completion):
    """Return code and verdict of a reply; what the command does with one."""
    reply = code_of(json.dumps(completion).encode())
    candidate = Candidate(index=0, name="case", code=reply.text, reply_fault=reply.fault)
    # 60,000 minus signs are above the usual 32 KiB already
    (verdict,) = verdicts_of([candidate], {}, Policy(source_kib_max=128))
    return reply.text, verdict


@needs_cases
def test_no_case_is_left_out():
    assert {path.stem for path in CASES.glob("rp_*.py")} == set(RIGHT)


@needs_cases
@pytest.mark.parametrize("name", RIGHT)
def test_case(name):
    module = case(name)
    code, verdict = judged(reply_of(module))
    assert verdict.reason is RIGHT[name]
    if verdict.outcome == "infrastructure":
        assert all(part in code for part in module.CHECK["must_contain"])
        assert not any(part in code for part in module.CHECK["must_not_contain"])


@needs_cases
def test_unusual_separators_are_kept_byte_for_byte():
    module = case("rp_unicode_line_separators")
    content = module.payload()["choices"][0]["message"]["content"]
    assert judged(module.payload())[0] in content


@needs_cases
@pytest.mark.parametrize("variant", ["payload", "payload_that_still_parses", "payload_brackets"])
def test_every_depth_is_a_matter_of_syntax(variant):
    _, verdict = judged(getattr(case("rp_deep_nesting"), variant)())
    assert verdict.reason is Reason.SYNTAX


def test_a_reply_without_a_task_is_rejected_at_the_stage_of_replies():
    choice = {"finish_reason": "length", "message": {"content": "```python\nimport torch\n"}}
    _, verdict = judged({"choices": [choice]})
    assert (verdict.outcome, verdict.stage, verdict.reason) == ("rejected", Stage.REPLY, Reason.TRUNCATED)
    assert verdict.evidence["said"].startswith("```python")
