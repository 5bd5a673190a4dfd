"""Find the task in a chat completion, or say why it holds none.

Nothing here parses Python: a reply may be nested so deeply that a parser gives up or dies. Definitions are
found by their first line, and what is found is passed on byte for byte; whether it is a good task is for the
filters to say.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from composer.llm.fences import Block, blocks_of

NEEDED = ("Model", "get_inputs", "get_init_inputs")
"""What a task defines at module level."""

_DEFINITION = {name: re.compile(rf"^(?:class|def)[ \t]+{name}\b", re.MULTILINE) for name in NEEDED}
_STATEMENT = re.compile(r"^(?:import|from|class|def|@|[A-Z][A-Z0-9_, ]*=)", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import|from)[ \t]", re.MULTILINE)
_REASONING = re.compile(r"\s*<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_REASONING_END = re.compile(r".*</(?:think|thinking|reasoning)>", re.DOTALL)
_CUT_OFF = ("length", "max_tokens")


class ReplyFault(StrEnum):
    """Why a reply holds no task; the filters have a reason of each of these names."""

    EMPTY_REPLY = "empty_reply"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    NO_CODE = "no_code"
    AMBIGUOUS_CODE = "ambiguous_code"


@dataclass(frozen=True, slots=True)
class Reply:
    """What one reply says."""

    text: str
    """The code or, where there is none, what was said instead; may be empty."""
    fault: ReplyFault | None = None
    detail: str = ""
    """What exactly is wrong, in words that the model is told; empty without a fault."""


class NotACompletionError(ValueError):
    """The server answered with something else than a chat completion: its fault, not the model's."""


def content_of(completion: bytes) -> Reply:
    """Return what the model said, without its reasoning. Raises NotACompletionError."""
    try:
        reply = json.loads(completion)
    except (ValueError, RecursionError) as error:
        raise NotACompletionError(f"no JSON ({str(error)[:100]})") from None
    if not isinstance(reply, dict) or not isinstance(reply.get("choices"), list):
        raise NotACompletionError("JSON without `choices`")
    choice = next((one for one in reply["choices"] if isinstance(one, dict)), {})
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    text = _answer(_text_of(message.get("content")))
    if choice.get("finish_reason") in _CUT_OFF:
        return Reply(text, ReplyFault.TRUNCATED, "your reply was cut off at the token limit")
    if choice.get("finish_reason") == "content_filter" or message.get("refusal"):
        refusal = message.get("refusal")
        return Reply(text or (refusal if isinstance(refusal, str) else ""), ReplyFault.REFUSED, "refused")
    if not text.strip():
        return Reply(text, ReplyFault.EMPTY_REPLY, "your reply was empty")
    return Reply(text)


def code_of(completion: bytes) -> Reply:
    """Return the task that a chat completion holds. Raises NotACompletionError."""
    said = content_of(completion)
    return said if said.fault else _task_in(said.text)


def _text_of(content: Any) -> str:
    """Return a message's text; some servers send it in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return ""


def _answer(text: str) -> str:
    """Leave out what the model thought aloud; some servers send only the end of the section's marks."""
    thought = _REASONING.match(text)
    if thought:
        return text[thought.end() :]
    end = _REASONING_END.match(text)
    return text[end.end() :] if end and "<think" not in text[: end.end()] else text


def _task_in(text: str) -> Reply:
    blocks = blocks_of(text)
    wrapped = [code for body in (text, *(b.text for b in blocks if b.is_data)) if (code := _wrapped(body))]
    if wrapped:
        blocks = [inner for code in wrapped for inner in blocks_of(code) or [Block("python", code)]]
    if not blocks and _count(text):
        start = _IMPORT.search(text)
        blocks = [Block("", text[start.start() :] if start else text)]
    return _chosen([block.text for block in blocks if block.may_be_python], text)


def _chosen(codes: list[str], text: str) -> Reply:
    """Take the last block that has all that a task needs, else those together that have it."""
    whole = [code for code in codes if all(_DEFINITION[name].search(code) for name in NEEDED)]
    last = max((place for place, code in enumerate(codes) if _count(code)), default=len(codes) - 1)
    parts = [code for code in codes[: last + 1] if _STATEMENT.search(code)]
    if not parts:
        return Reply(text, ReplyFault.NO_CODE, "your reply holds no Python block that defines a task")
    code = whole[-1] if whole else "\n\n".join(part.strip("\n") for part in parts) + "\n"
    twice = [name for name in NEEDED if len(_DEFINITION[name].findall(code)) > 1]
    if twice:
        detail = f"your reply defines {', '.join(twice)} more than once"
        return Reply(text, ReplyFault.AMBIGUOUS_CODE, detail)
    return Reply(code)


def _count(code: str) -> int:
    """Return how many of the needed definitions are there."""
    return sum(pattern.search(code) is not None for pattern in _DEFINITION.values())


def _wrapped(text: str) -> str | None:
    """Return the `code` of a JSON object, if that is what the text is."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    code = value.get("code") if isinstance(value, dict) else None
    return code if isinstance(code, str) else None
