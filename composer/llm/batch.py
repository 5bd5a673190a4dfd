"""Ask through the Batch API: half the price, answers within 24 hours, in any order.

A batch is found again by its label, a digest of the requests in it, which the server keeps with it: a command
that was killed while it waited goes on waiting for the same batch, and nothing is bought twice.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from composer.llm.client import endpoint_faults
from composer.llm.costs import Meter, estimated, reported
from composer.llm.errors import CostLimitError, EndpointError
from composer.llm.protocols import ReplyCache
from composer.llm.replies import NotACompletionError, content_of
from composer.llm.requests import Request

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

REQUESTS_MAX, BYTES_MAX = 50_000, 190_000_000
"""Of one batch: the API takes 50,000 requests and 200 MB."""

DISCOUNT = 0.5
"""Price of a token in a batch relative to the usual one."""

POLL_SECONDS = 20.0

_LABEL = "opweaver"
_OVER = ("completed", "failed", "expired", "cancelled")
"""What a batch ends as; an expired one has replies to a part of its requests."""


class NotYetError(Exception):
    """The reply has to be asked for first."""


class BatchClient:
    """Gives replies from the cache, and notes what is to be asked for in the next batch."""

    def __init__(
        self, client: "AsyncOpenAI", cache: ReplyCache, meter: Meter, poll_seconds: float = POLL_SECONDS
    ) -> None:
        self.openai = client
        self.base_url = str(client.base_url).rstrip("/")
        self.wanted: dict[str, Request] = {}
        """What was asked for and is not there, by its id in a batch."""
        self._cache = cache
        self._meter = meter
        self._poll_seconds = poll_seconds

    async def reply(self, request: Request) -> bytes:
        """Return the reply where it is there. Raises NotYetError."""
        stored = self._cache.reply(request)
        if stored is None:
            self.wanted[f"{request.hash}-{request.draw}"] = request
            raise NotYetError
        return stored

    async def ask(self) -> list[str]:
        """Get what is wanted, in as many batches as it takes; return what was said of those that failed.

        Raises EndpointError, and CostLimitError where nothing more can be afforded.
        """
        wanted, self.wanted = self._affordable(), {}
        errors: dict[str, str] = {}
        while wanted:
            before = len(wanted)
            for part in _parts(wanted):
                errors |= await self._collected(await self._ended(part), part)
            wanted = {id: one for id, one in wanted.items() if self._cache.reply(one) is None}
            if len(wanted) == before:  # another batch would end as this one did
                break
        return [errors.get(id, "no reply in the batch") for id in wanted]

    def _affordable(self) -> dict[str, Request]:
        """Return as many of the wanted requests as the limit of costs allows."""
        found: dict[str, Request] = {}
        try:
            for id, request in self.wanted.items():
                self._meter.start(request)
                found[id] = request
        except CostLimitError:
            if not found:
                raise
        finally:
            for _ in found:
                self._meter.end()
        return found

    async def _ended(self, part: Mapping[str, Request]) -> "Batch":
        """Return the batch of these requests once it has ended; it is sent where there is none yet."""
        label = hashlib.sha256("".join(part).encode()).hexdigest()[:32]
        with endpoint_faults(self.base_url):
            batch = await self._known(label) or await self._sent(label, part)
            while batch.status not in _OVER:
                await asyncio.sleep(self._poll_seconds)
                batch = await self.openai.batches.retrieve(batch.id)
        if batch.status == "failed":
            told = [error.message for error in (batch.errors.data or [])] if batch.errors else []
            raise EndpointError(
                f"{self.base_url}: batch {batch.id} failed: {'; '.join(filter(None, told))[:300]}"
            )
        return batch

    async def _known(self, label: str) -> "Batch | None":
        """Return the batch of the same requests that an earlier start sent."""
        async for batch in self.openai.batches.list(limit=100):
            if (batch.metadata or {}).get(_LABEL) == label and batch.status not in ("failed", "cancelled"):
                return batch
        return None

    async def _sent(self, label: str, part: Mapping[str, Request]) -> "Batch":
        lines = b"".join(_lines(part))
        file = await self.openai.files.create(file=("requests.jsonl", lines), purpose="batch")
        return await self.openai.batches.create(
            input_file_id=file.id,
            endpoint="/v1/chat/completions",
            completion_window="24h",
            metadata={_LABEL: label},
        )

    async def _collected(self, batch: "Batch", part: Mapping[str, Request]) -> dict[str, str]:
        """Store the replies of a batch; return what was said of the other requests, by id."""
        errors = {}
        for file_id in (batch.output_file_id, batch.error_file_id):
            if file_id is None:
                continue
            with endpoint_faults(self.base_url):
                content = await self.openai.files.content(file_id)
            for line in content.content.splitlines():
                id, reply, error = _read(line)
                if reply is None:
                    errors[id] = error
                elif id in part and self._cache.reply(part[id]) is None:
                    self._cache.keep_reply(part[id], reply, self.base_url)
                    self._meter.bought(reported(reply) or estimated(part[id]))
        return errors


def _lines(part: Mapping[str, Request]) -> Iterator[bytes]:
    for id, request in part.items():
        line = {"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": request.body}
        yield json.dumps(line).encode() + b"\n"


def _parts(wanted: Mapping[str, Request]) -> Iterator[dict[str, Request]]:
    """Cut into what fits one batch."""
    part: dict[str, Request] = {}
    size = 0
    for id, request in wanted.items():
        length = len(request.text) + 300
        if part and (len(part) == REQUESTS_MAX or size + length > BYTES_MAX):
            yield part
            part, size = {}, 0
        part[id] = request
        size += length
    if part:
        yield part


def _read(line: bytes) -> tuple[str, bytes | None, str]:
    """Return id, reply and fault of one line of a batch's output; there is a reply or a fault."""
    try:
        answer: Any = json.loads(line)
        id, response = str(answer["custom_id"]), answer.get("response") or {}
        if response.get("status_code") == 200:
            reply = json.dumps(response["body"]).encode()
            content_of(reply)
            return id, reply, ""
        error = answer.get("error") or response.get("body", {}).get("error") or {}
        return id, None, str(error.get("message", "no reply"))[:300]
    except NotACompletionError as error:
        return id, None, str(error)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "", None, "a line of the batch is not readable"
