"""Ask an OpenAI-compatible endpoint. Only here openai is imported, and only here a request is tried again.

One `AsyncOpenAI` whose own retries are off. A request has one limit for all its tries and the pauses between
them; waiting for a slot, and as long as the server asks to wait, does not count.
"""

import asyncio
import json
import os
import random
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import openai
from openai import AsyncOpenAI

from composer.llm.costs import Meter, estimated, reported
from composer.llm.errors import EndpointError, EndpointSettingsError, NoReplyError, RequestRefusedError
from composer.llm.protocols import ReplyCache
from composer.llm.replies import NotACompletionError, content_of
from composer.llm.requests import Request
from composer.llm.settings import LlmSettings
from composer.llm.throttle import Breaker, Throttle

PATIENCE_SECONDS = 60.0
"""Time without any reply after which an endpoint that only fails is given up."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.5, 30.0
"""Pauses double from one to the other, with jitter, where the server names none."""

REFUSES = "refuses the request; fit section [llm] of the settings"
"""Said of an endpoint that refuses the very first one."""

_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_MISSING = (404, 405, 501)
_AGAIN = (408, 409, 425, 429)
_KEY = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class _Failure:
    """One try that may be made again."""

    text: str
    pause_seconds: float | None = None
    """What the server asked for."""
    too_much: bool = False
    no_endpoint: bool = False
    """Nothing answers at the address, or something that is no endpoint."""


class ChatClient:
    """Gets replies, from the cache where they are there."""

    def __init__(
        self,
        client: AsyncOpenAI,
        cache: ReplyCache,
        settings: LlmSettings,
        meter: Meter,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.openai = client
        self.base_url = str(client.base_url).rstrip("/")
        self.meter = meter
        self.throttle = Throttle(settings.concurrency)
        self._cache = cache
        self._limit_seconds = settings.request_seconds
        self._breaker = Breaker(patience_seconds)

    async def reply(self, request: Request) -> bytes:
        """Return the reply to a request. Raises what `composer.llm.errors` lists."""
        stored = self._cache.reply(request)
        if stored is not None:
            return stored
        self.meter.start(request)
        try:
            reply = await self._ask(request)
        finally:
            self.meter.end()
        self._cache.keep_reply(request, reply, self.base_url)
        self.meter.bought(reported(reply) or estimated(request))
        return reply

    async def models(self) -> tuple[str, ...] | None:
        """Return the models that the endpoint lists, None where it gives no such list."""
        try:
            answer = await self.openai.models.with_raw_response.list(timeout=self._limit_seconds)
            return tuple(str(model["id"]) for model in json.loads(answer.content)["data"])
        except (openai.OpenAIError, ValueError, TypeError, KeyError):
            return None

    async def _ask(self, request: Request) -> bytes:
        left = self._limit_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            async with self.throttle.slot():
                began = time.monotonic()
                # half of the limit: a connection that died silently is tried once more
                outcome = await self._try(request, min(left, self._limit_seconds / 2))
                left -= time.monotonic() - began
            if isinstance(outcome, bytes):
                self.throttle.replied()
                self._breaker.replied()
                return outcome
            self._count(outcome)
            wait = 0.0 if outcome.pause_seconds else pause * random.uniform(0.5, 1.0)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
            left -= wait
            if left <= 0:
                raise NoReplyError(f"no reply within {self._limit_seconds:g} s: {outcome.text}")
            await asyncio.sleep(wait)

    def _count(self, failure: _Failure) -> None:
        if failure.too_much:
            self.throttle.too_much(failure.pause_seconds)
        if not self._breaker.failed(no_endpoint=failure.no_endpoint, too_much=failure.too_much):
            return
        wrong_address = failure.no_endpoint and not self._breaker.ever_replied
        raise EndpointError(
            f"{self.base_url}: {self._breaker.failures} tries in a row failed, the last one with: "
            f"{failure.text}; "
            + ("correct llm.base_url or OPENAI_BASE_URL (most end in /v1), or " if wrong_address else "")
            + "run the same command again once the endpoint works; replies so far are kept"
        )

    async def _try(self, request: Request, limit_seconds: float) -> bytes | _Failure:
        body = request.body
        model, messages = body.pop("model"), body.pop("messages")
        try:
            async with asyncio.timeout(limit_seconds):
                answer = await self.openai.chat.completions.with_raw_response.create(
                    model=model, messages=messages, extra_body=body, timeout=limit_seconds
                )
            reply: bytes = answer.content
            content_of(reply)
        except (TimeoutError, openai.APITimeoutError):
            return _Failure(f"no answer in {limit_seconds:.3g} s")
        except openai.APIStatusError as error:
            return self._after_status(error, model)
        except openai.APIConnectionError as error:
            return _Failure(f"no connection ({_one_line(error.__cause__ or error)})", no_endpoint=True)
        except NotACompletionError as error:
            a_page = not reply.lstrip().startswith(b"{")
            return _Failure(f"an answer that is no chat completion: {error}", no_endpoint=a_page)
        return reply

    def _after_status(self, error: openai.APIStatusError, model: str) -> _Failure:
        """Return a failure that passes with time; raise for one that does not."""
        text = _one_line(error)
        lasting = _lasting(
            self.base_url, error, f"no such address or model; check --model {model} and llm.base_url"
        )
        if lasting:
            raise lasting
        if not is_refusal(error.status_code):
            pause = _retry_after(error)
            return _Failure(text, pause, too_much=error.status_code == 429 or pause is not None)
        if not self._breaker.ever_replied:
            raise EndpointSettingsError(f"{self.base_url}: {REFUSES} ({text})")
        raise RequestRefusedError(text)


def is_refusal(status: int) -> bool:
    """Return whether another try of the same request would end as this one did."""
    return status < 500 and status not in _AGAIN


def _lasting(base_url: str, error: openai.APIStatusError, missing: str) -> EndpointError | None:
    """Return what no other request would change either; None for all other answers."""
    status, text = error.status_code, _one_line(error)
    if status == 429 and any(code in (error.code, error.type) for code in _QUOTA):
        return EndpointError(
            f"{base_url}: the account's quota is used up ({text}); replies so far are kept, run the same "
            "command again once there is more"
        )
    if status in (401, 403):
        return EndpointSettingsError(f"{base_url}: the key is refused ({text}); set OPENAI_API_KEY")
    if status in _MISSING:
        return EndpointSettingsError(f"{base_url}: {missing} ({text})")
    return None


@contextmanager
def endpoint_faults(base_url: str, missing: str) -> Iterator[None]:
    """Turn what openai raises in the block into EndpointError; `missing` is what a 404 means there."""
    try:
        yield
    except openai.OpenAIError as error:
        lasting = _lasting(base_url, error, missing) if isinstance(error, openai.APIStatusError) else None
        raise lasting or EndpointError(
            f"{base_url}: {_one_line(error)}; replies so far are kept, run the same command again"
        ) from error


@asynccontextmanager
async def chat_client(
    cache: ReplyCache, settings: LlmSettings, meter: Meter, base_url: str | None = None
) -> AsyncIterator[ChatClient]:
    """Yield a client; its connections close with the block. Raises EndpointSettingsError."""
    async with openai_client(settings, base_url) as client:
        yield ChatClient(client, cache, settings, meter)


def openai_client(settings: LlmSettings, base_url: str | None = None) -> AsyncOpenAI:
    """Return the one client of a command; `base_url` is the address of a server that needs no key.

    Raises EndpointSettingsError where there is neither key nor address, or one that cannot be right. An
    endpoint other than OpenAI's may do without a key.
    """
    if base_url:
        return AsyncOpenAI(api_key="none", base_url=base_url, max_retries=0)
    key, from_environment = os.environ.get("OPENAI_API_KEY"), os.environ.get("OPENAI_BASE_URL")
    address = settings.base_url or from_environment
    if not key and not address:
        raise EndpointSettingsError(
            "no endpoint: set OPENAI_API_KEY, or OPENAI_BASE_URL for another server, or give --llm local"
        )
    if key and not _KEY.fullmatch(key):
        raise EndpointSettingsError(
            "OPENAI_API_KEY: holds a space, a line end or a letter beyond ASCII; set it to the key alone"
        )
    if address and not _is_address(address):
        place = "llm.base_url" if settings.base_url else "OPENAI_BASE_URL"
        raise EndpointSettingsError(
            f"{place}: {address!r} is no address; give one such as http://localhost:8000/v1"
        )
    return AsyncOpenAI(api_key=key or "none", base_url=address, max_retries=0)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        named = bool(parts.hostname) and parts.port != 0  # reading the port fails where it is none
    except ValueError:
        return False
    return named and parts.scheme in ("http", "https") and not re.search(r"\s", text)


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Return the seconds that the server wants to be left alone, None where it does not say."""
    headers = error.response.headers
    milliseconds, text = headers.get("retry-after-ms"), headers.get("retry-after", "")
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1e3)
        return max(0.0, float(text) if text[:1].isdigit() else _seconds_until(text))
    except ValueError:
        return None


def _seconds_until(http_date: str) -> float:
    return parsedate_to_datetime(http_date).timestamp() - time.time()


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
