"""Does an endpoint work, does it know the model, does it honour a JSON schema?"""

import json
from dataclasses import dataclass
from typing import Any

from composer.llm.client import ChatClient
from composer.llm.errors import EndpointError, NoReplyError, RequestRefusedError
from composer.llm.replies import content_of
from composer.llm.requests import Request

_WORDS = ("loom", "shuttle")
_SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "enum": list(_WORDS)}},
    "required": ["word"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found out, in the order in which it was tried."""

    fault: str | None
    """Why a plain question got no reply."""
    schema: str
    """`honoured`, `ignored` or `refused`."""


async def probed(client: ChatClient, model: str) -> Probe:
    """Ask twice, once with a schema that the question contradicts; raises nothing."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": "Say good morning in one short sentence."}],
        "max_tokens": 50,
    }
    try:
        await client.reply(Request.of(body))
    except (EndpointError, NoReplyError, RequestRefusedError) as error:
        return Probe(str(error), "unknown")
    form = {"type": "json_schema", "json_schema": {"name": "word", "strict": True, "schema": _SCHEMA}}
    try:
        reply = await client.reply(Request.of({**body, "response_format": form}))
    except (EndpointError, NoReplyError, RequestRefusedError):
        return Probe(None, "refused")
    return Probe(None, "honoured" if _fits(content_of(reply).text) else "ignored")


def _fits(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and list(value) == ["word"] and value["word"] in _WORDS
