"""Replies as models and servers really send them."""

import json

import pytest

from composer.llm.replies import NotACompletionError, ReplyFault, code_of

TASK = '''import torch
import torch.nn as nn

ROWS, WIDTH = 512, 1024


class Model(nn.Module):
    """A task."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return torch.atan(self.linear(x))


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
'''
HEAD, TAIL = TASK[: TASK.index("def get_inputs")], TASK[TASK.index("def get_inputs") :]


def completion(content, finish="stop", **message):
    choice = {"finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
    return json.dumps({"choices": [choice]}).encode()


def fenced(code, language="python", fence="```"):
    return f"{fence}{language}\n{code}{fence}\n"


@pytest.mark.parametrize(
    "content",
    [
        TASK,
        fenced(TASK),
        fenced(TASK, ""),
        fenced(TASK, "Python title=task.py"),
        fenced(TASK, fence="~~~"),
        fenced(TASK, fence="`````"),
        "```python\n" + TASK,
        "Here it is:\n\n" + TASK,
        "Sketch:\n" + fenced(TASK.replace("atan", "relu")) + "Better:\n" + fenced(TASK),
        fenced(TASK) + "Try it:\n" + fenced("import torch\nprint(Model(*get_init_inputs()))\n"),
        fenced("pip install torch\n", "bash") + fenced(TASK),
        fenced(json.dumps({"operators": ["atan"], "code": TASK}) + "\n", "json"),
        json.dumps({"code": TASK}),
        json.dumps({"code": fenced(TASK)}),
        "<think>\n" + fenced(TASK.replace("atan", "relu")) + "</think>\n" + fenced(TASK),
        "Let me see: relu.\n</think>\n" + fenced(TASK),
        "1. The task:\n\n" + "".join(f"   {line}\n" for line in fenced(TASK).splitlines()),
        [{"type": "text", "text": "```python\n"}, {"type": "text", "text": TASK + "```"}],
    ],
)
def test_the_task_is_found(content):
    reply = code_of(completion(content))
    assert (reply.fault, reply.text.rstrip()) == (None, TASK.rstrip())


def test_blocks_that_only_together_are_a_task_are_joined_in_order():
    usage = fenced("model = Model(*get_init_inputs())\n")
    reply = code_of(completion("Layer:\n" + fenced(HEAD) + "Inputs:\n" + fenced(TAIL) + usage))
    assert reply.fault is None
    assert reply.text.split() == TASK.split()


def test_a_fence_inside_a_docstring_closes_nothing():
    task = TASK.replace('"""A task."""', '"""Example:\n\n```\nModel(8)\n```\n"""')
    assert code_of(completion(fenced(task))).text == task


def test_unusual_line_separators_stay_as_they_are():
    task = TASK.replace("ROWS,", "# \u2028 \u0085 \x0c\nROWS,")
    assert code_of(completion(fenced(task))).text == task


def test_a_lone_surrogate_is_passed_on():
    task = TASK.replace("A task.", "\ud83d")
    assert code_of(completion(fenced(task))).text == task


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (completion(None), ReplyFault.EMPTY_REPLY),
        (completion(" \n"), ReplyFault.EMPTY_REPLY),
        (completion("<think>never ends"), ReplyFault.EMPTY_REPLY),
        (b'{"choices": []}', ReplyFault.EMPTY_REPLY),
        (b'{"choices": [{"message": null}]}', ReplyFault.EMPTY_REPLY),
        (completion(fenced(TASK), "length"), ReplyFault.TRUNCATED),
        (completion(None, "length"), ReplyFault.TRUNCATED),
        (completion("", "content_filter"), ReplyFault.REFUSED),
        (completion(None, refusal="I cannot help with that."), ReplyFault.REFUSED),
        (completion("I would rather not combine `torch.fft` and `nn.LSTM`."), ReplyFault.NO_CODE),
        (completion(fenced("pip install torch\n", "bash")), ReplyFault.NO_CODE),
        (completion(fenced(TASK + "\n\n" + TASK)), ReplyFault.AMBIGUOUS_CODE),
        (completion(fenced(TASK + "\n\ndef get_inputs():\n    return []\n")), ReplyFault.AMBIGUOUS_CODE),
        (completion(fenced(HEAD) + fenced(HEAD) + fenced(TAIL)), ReplyFault.AMBIGUOUS_CODE),
    ],
)
def test_a_reply_without_a_task_says_why(reply, fault):
    assert code_of(reply).fault is fault


def test_a_class_of_another_name_is_passed_on_for_the_contract_to_judge():
    reply = code_of(completion(fenced(TASK.replace("class Model", "class Mixer"))))
    assert reply.fault is None
    assert "class Mixer" in reply.text


@pytest.mark.parametrize("deep", ["-" * 60_000 + "1", "[" * 5_000, '{"code":' * 20_000, "`" * 100_000])
def test_deep_nesting_does_no_harm(deep):
    assert code_of(completion(fenced(f"FLAG = {deep}\n{TASK}"))).fault is None
    assert code_of(completion(deep)).fault is ReplyFault.NO_CODE


@pytest.mark.parametrize(
    "answer", [b"", b"<html>502</html>", b"[]", b'{"error": {"message": "busy"}}', b"\xff\xfe", b"[" * 99_999]
)
def test_what_is_no_completion_is_the_servers_fault(answer):
    with pytest.raises(NotACompletionError):
        code_of(answer)
