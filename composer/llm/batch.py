"""Ask through the Batch API: half the price, answers within 24 hours, in any order.

A batch carries a label that the server keeps with it: a digest of the requests in it, the first of them, and
their number. By it a command that was killed while it waited finds what it sent, also where it now wants
more; it goes on waiting for that and buys nothing twice.
"""

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from composer.llm.client import REFUSES, endpoint_faults, is_refusal
from composer.llm.costs import Meter, estimated, reported
from composer.llm.errors import (
    CostLimitError,
    EndpointError,
    EndpointSettingsError,
    RequestRefusedError,
)
from composer.llm.protocols import ReplyCache
from composer.llm.replies import NotACompletionError, content_of
from composer.llm.requests import Request

if TYPE_CHECKING:
    from openai import AsyncOpenAI

REQUESTS_MAX, BYTES_MAX = 50_000, 190_000_000
"""Of one batch: the API takes 50,000 requests and 200 MB."""

POLL_SECONDS = 20.0

READING_RETRIES = 8
"""Tries of whatever only reads, some 40 s together: one fault must not end a wait of a day."""

_OVER = ("completed", "failed", "expired", "cancelled")
"""What a batch ends as; an expired or cancelled one has replies to a part of its requests."""

_NO_BATCHES = "no Batch API here; leave out --batch"

Batch = Mapping[str, Any]
"""As the server describes it."""


class NotYetError(Exception):
    """The reply has to be asked for first."""


class BatchClient:
    """Gives replies from the cache, and notes what is to be asked for in the next batch."""

    def __init__(
        self, client: "AsyncOpenAI", cache: ReplyCache, meter: Meter, poll_seconds: float = POLL_SECONDS
    ) -> None:
        self.base_url = str(client.base_url).rstrip("/")
        self.wanted: dict[str, Request] = {}
        """What was asked for and is not there, by its id in a batch."""
        self._sending = client
        self._reading = client.with_options(max_retries=READING_RETRIES)
        self._cache = cache
        self._meter = meter
        self._poll_seconds = poll_seconds
        self._refused: dict[str, str] = {}

    async def reply(self, request: Request) -> bytes:
        """Return the reply where it is there. Raises NotYetError, or RequestRefusedError once known."""
        stored = self._cache.reply(request)
        if stored is not None:
            return stored
        id = f"{request.hash}-{request.draw}"
        if id in self._refused:
            raise RequestRefusedError(self._refused[id])
        self.wanted[id] = request
        raise NotYetError

    async def ask(self) -> list[str]:
        """Get what is wanted, in as many batches as it takes; return what was said of those that failed.

        Raises EndpointError, and CostLimitError where nothing more can be afforded.
        """
        wanted, self.wanted = self._affordable(), {}
        with endpoint_faults(self.base_url, _NO_BATCHES):
            for batch in await self._sent_earlier(list(wanted)):
                await self._collected(await self._ended(batch), wanted)
            while wanted := self._open(wanted):
                faults: dict[str, str] = {}
                for part in _parts(wanted):
                    faults |= await self._collected(await self._ended(await self._sent(part)), part)
                if self._open(wanted) == wanted:  # another batch would end as this one did
                    return [faults.get(id, "no reply in the batch") for id in wanted]
        return []

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

    def _open(self, wanted: Mapping[str, Request]) -> dict[str, Request]:
        """Return those that were neither replied to nor refused."""
        return {
            id: request
            for id, request in wanted.items()
            if id not in self._refused and self._cache.reply(request) is None
        }

    async def _sent_earlier(self, ids: Sequence[str]) -> list[Batch]:
        """Return the batches of earlier starts whose requests are all wanted, in a row."""
        places = {id: place for place, id in enumerate(ids)}
        found: dict[str, Batch] = {}
        after: dict[str, str] = {}
        while True:
            page = self._read(
                await self._reading.batches.with_raw_response.list(limit=100, extra_query=after)
            )
            listed = page.get("data")
            new = [one for one in listed or () if isinstance(one, dict) and one.get("id") not in found]
            found |= {str(one.get("id")): one for one in new}
            if not new or not page.get("has_more"):
                break
            after = {"after": str(new[-1].get("id"))}
        return [one for one in found.values() if one.get("status") != "failed" and _is_of(one, ids, places)]

    async def _sent(self, part: Mapping[str, Request]) -> Batch:
        lines = b"".join(_lines(part))
        file = self._read(
            await self._sending.files.with_raw_response.create(
                file=("requests.jsonl", lines), purpose="batch"
            )
        )
        return self._read(
            await self._sending.batches.with_raw_response.create(
                input_file_id=str(file.get("id")),
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata=_label(list(part)),
            )
        )

    async def _ended(self, batch: Batch) -> Batch:
        """Wait until a batch has ended."""
        id = str(batch.get("id"))
        while batch.get("status") not in _OVER:
            if not isinstance(batch.get("status"), str):
                raise EndpointSettingsError(f"{self.base_url}: {_NO_BATCHES} (an answer that is no batch)")
            await asyncio.sleep(self._poll_seconds)
            batch = self._read(await self._reading.batches.with_raw_response.retrieve(id))
        if batch["status"] == "failed":
            raise EndpointError(
                f"{self.base_url}: batch {id} failed: {_told(batch)}; correct that and run the same command "
                "again, replies so far are kept"
            )
        return batch

    async def _collected(self, batch: Batch, part: Mapping[str, Request]) -> dict[str, str]:
        """Store the replies of a batch; return what was said of the other requests, by id."""
        faults: dict[str, str] = {}
        for name in ("output_file_id", "error_file_id"):
            if not batch.get(name):
                continue
            content = await self._reading.files.content(str(batch[name]))
            for line in map(_line, content.content.splitlines()):
                if line.reply is None:
                    faults[line.id] = line.fault
                    if line.refused:
                        self._refused[line.id] = line.fault
                elif line.id in part and self._cache.reply(part[line.id]) is None:
                    self._cache.keep_reply(part[line.id], line.reply, self.base_url)
                    self._meter.bought(reported(line.reply) or estimated(part[line.id]))
        if self._refused and not self._meter.replies:
            raise EndpointSettingsError(f"{self.base_url}: {REFUSES} ({next(iter(self._refused.values()))})")
        return faults

    def _read(self, answer: Any) -> dict[str, Any]:
        """Return the JSON object of a raw answer. Raises EndpointSettingsError where it is none."""
        try:
            value = json.loads(answer.content)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise EndpointSettingsError(f"{self.base_url}: {_NO_BATCHES} (an answer that is no JSON object)")
        return value


def _label(ids: Sequence[str]) -> dict[str, str]:
    """Return the metadata of a batch of these requests."""
    digest = hashlib.sha256("".join(ids).encode()).hexdigest()[:32]
    return {"opweaver": digest, "first": ids[0], "requests": str(len(ids))}


def _is_of(batch: Batch, ids: Sequence[str], places: Mapping[str, int]) -> bool:
    """Return whether the label of a batch is that of some of these ids in a row."""
    label = batch.get("metadata") or {}
    start, count = places.get(label.get("first", "")), str(label.get("requests", ""))
    if start is None or not count.isdecimal() or not 0 < int(count) <= len(ids) - start:
        return False
    return bool(label == _label(ids[start : start + int(count)]))


def _told(batch: Batch) -> str:
    errors = (batch.get("errors") or {}).get("data") or []
    return "; ".join(str(error.get("message")) for error in errors)[:300] or "the server does not say why"


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


@dataclass(frozen=True, slots=True)
class _Line:
    """What became of one request of a batch: there is a reply or a fault."""

    id: str
    reply: bytes | None = None
    fault: str = ""
    refused: bool = False
    """Another try would end as this one did."""


def _line(text: bytes) -> _Line:
    """Read one line of a batch's output."""
    id = ""
    try:
        answer: Any = json.loads(text)
        id, response = str(answer["custom_id"]), answer.get("response") or {}
        status = response.get("status_code")
        if status == 200:
            reply = json.dumps(response["body"]).encode()
            content_of(reply)
            return _Line(id, reply)
        error = answer.get("error") or (response.get("body") or {}).get("error") or {}
        refused = isinstance(status, int) and status >= 400 and is_refusal(status)
        return _Line(id, fault=str(error.get("message", "no reply"))[:300], refused=refused)
    except NotACompletionError as error:
        return _Line(id, fault=str(error))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return _Line(id, fault="a line of the batch is not readable")
