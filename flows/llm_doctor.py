"""What `opweaver doctor` says about the model of the settings."""

import asyncio
import importlib.util
import os

from composer.llm.costs import Meter
from composer.llm.errors import EndpointError
from composer.llm.local import model_file
from composer.llm.requests import Request
from composer.llm.settings import LlmSettings
from filters.doctor import Check

_SECONDS = 60.0
"""Limit of each question."""


class _NoCache:
    """Asks anew each time."""

    def reply(self, request: Request) -> bytes | None:
        return None

    def keep_reply(self, request: Request, reply: bytes, base_url: str) -> None:
        pass

    def request(self, hash: str) -> Request | None:
        return None

    def replies(self) -> list[bytes]:
        return []


def report(settings: LlmSettings) -> list[Check]:
    """Try the endpoint. Without a model in the settings nothing is tried, and that is no failure."""
    if settings.server == "local":
        return [_local()]
    address = settings.base_url or os.environ.get("OPENAI_BASE_URL")
    if not settings.model and not address:
        return [Check("LLM endpoint", True, "none set; `--model NAME` or `--llm local` asks a model")]
    if importlib.util.find_spec("openai") is None:
        return [Check("LLM endpoint", False, "the package openai is not installed; install it with pip")]
    return asyncio.run(_tried(settings))


def _local() -> Check:
    try:
        return Check("local model", True, str(model_file().name))
    except EndpointError as error:
        return Check("local model", False, str(error))


async def _tried(settings: LlmSettings) -> list[Check]:
    from composer.llm.client import chat_client
    from composer.llm.probe import probed

    quick = settings.model_copy(update={"request_seconds": _SECONDS})
    try:
        async with chat_client(_NoCache(), quick, Meter()) as client:
            listed = await client.models() or ()
            model = settings.model or next(iter(listed), None)
            if model is None:
                return [Check("LLM endpoint", False, f"{client.base_url} lists no model; set llm.model")]
            probe = await probed(client, settings, model)
    except EndpointError as error:
        return [Check("LLM endpoint", False, str(error))]
    if probe.fault:
        return [Check("LLM endpoint", False, probe.fault)]
    among = f", which is not among the {len(listed)} models that it lists"
    unknown = among if listed and model not in listed else ""
    return [
        Check("LLM endpoint", True, f"{client.base_url} replies as {model}{unknown}"),
        Check("JSON schema", True, f"{probe.schema}{_MEANING[probe.schema]}"),
    ]


_MEANING = {
    "honoured": ": --mode plan is safe",
    "ignored": ": --mode plan relies on the prompt alone here",
    "refused": ": --mode plan does not work here",
}
