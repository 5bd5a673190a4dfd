"""What later rooms provide."""

from collections.abc import Iterable
from typing import Protocol

from composer.candidate import Candidate
from composer.llm.requests import Request


class ReplyCache(Protocol):
    """Keeps what was paid for. A reply belongs to (exact request body, draw), whoever gave it."""

    def reply(self, request: Request) -> bytes | None:
        """Return the stored reply, byte for byte."""

    def keep_reply(self, request: Request, reply: bytes, base_url: str) -> None:
        """Store a reply; a second one to the same request changes nothing."""

    def request(self, hash: str) -> Request | None:
        """Return a request that was replied to."""

    def replies(self) -> Iterable[bytes]:
        """Return all replies."""


class Validate(Protocol):
    """Says what is wrong with a task, in words for the model; None where nothing is known to be."""

    def __call__(self, candidate: Candidate) -> str | None:
        """Return the objection."""
