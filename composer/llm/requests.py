"""What is sent: one request is exactly its body, and a draw number where the same body is sent again."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from composer.llm.settings import LlmSettings

Message = Mapping[str, str]


@dataclass(frozen=True)
class Request:
    """One chat completion to be asked for; replies are kept under (hash, draw)."""

    text: str
    """The body as JSON, ASCII only, its fields in the order in which they were put in."""
    draw: int = 0
    """How often the same body was asked before."""

    @classmethod
    def of(cls, body: Mapping[str, Any], draw: int = 0) -> "Request":
        """Return the request with this body."""
        return cls(json.dumps(body, separators=(",", ":")), draw)

    @classmethod
    def asking(
        cls,
        settings: LlmSettings,
        model: str,
        messages: Sequence[Message],
        seed: int,
        schema: tuple[str, Mapping[str, Any]] | None = None,
    ) -> "Request":
        """Return the request for a reply as the settings want it; `schema`: a name, a strict JSON schema."""
        body: dict[str, Any] = {"model": model, "messages": messages}
        if settings.max_tokens:
            body["max_tokens"] = settings.max_tokens
        if settings.temperature is not None:
            body["temperature"] = settings.temperature
        if settings.send_seed:
            body["seed"] = seed
        if schema:
            wanted = {"name": schema[0], "strict": True, "schema": schema[1]}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        return cls.of({**body, **settings.extra})

    @cached_property
    def hash(self) -> str:
        """sha256 hex digest of the body."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def body(self) -> dict[str, Any]:
        """The body as a mapping."""
        body: dict[str, Any] = json.loads(self.text)
        return body

    @property
    def messages(self) -> Sequence[Message]:
        """The conversation so far."""
        messages: list[Message] = self.body["messages"]
        return messages

    def again(self) -> "Request":
        """Return the request for another reply to the same body."""
        return replace(self, draw=self.draw + 1)

    def continued(self, reply: str, objection: str) -> "Request":
        """Return the request that answers a reply; lone surrogates in it are sent as their escapes."""
        said = reply.encode("utf-8", "backslashreplace").decode()
        turns = [{"role": "assistant", "content": said}, {"role": "user", "content": objection}]
        return Request.of({**self.body, "messages": [*self.messages, *turns]})
