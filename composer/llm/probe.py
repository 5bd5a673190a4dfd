"""Does an endpoint work, does it know the model, does it honour a JSON schema?"""

import json
from dataclasses import dataclass

from composer.llm.client import ChatClient
from composer.llm.errors import EndpointError, NoReplyError, RequestRefusedError
from composer.llm.replies import content_of
from composer.llm.requests import Request
from composer.llm.settings import LlmSettings

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
    """`honoured`, `ignored` or `refused`; `unknown` with a fault."""


async def probed(client: ChatClient, settings: LlmSettings, model: str) -> Probe:
    """Ask twice as the settings say, once with a schema that the question contradicts; raises nothing."""
    messages = [{"role": "user", "content": "Say good morning in one short sentence."}]
    try:
        await client.reply(Request.asking(settings, model, messages, 0))
    except (EndpointError, NoReplyError, RequestRefusedError) as error:
        return Probe(str(error), "unknown")
    try:
        reply = await client.reply(Request.asking(settings, model, messages, 0, ("word", _SCHEMA)))
    except (EndpointError, NoReplyError, RequestRefusedError):
        return Probe(None, "refused")
    return Probe(None, "honoured" if _fits(content_of(reply).text) else "ignored")


def _fits(text: str) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and list(value) == ["word"] and value["word"] in _WORDS
