"""An OpenAI-compatible endpoint on this machine that answers as a test tells it to, over real HTTP."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

TASK = """import torch
import torch.nn as nn

BATCH_SIZE = 96
FEATURES = 1024
HIDDEN = 1536


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.linear = nn.Linear(features, hidden)

    def forward(self, x):
        return torch.tanh(self.linear(x))


def get_inputs():
    return [torch.randn(BATCH_SIZE, FEATURES)]


def get_init_inputs():
    return [FEATURES, HIDDEN]
"""


@dataclass(frozen=True)
class Answer:
    """What the endpoint does with one request."""

    content: str | None = f"```python\n{TASK}```"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """In place of a chat completion."""
    seconds: float = 0.0
    """Time before anything is sent."""
    reset: bool = False
    """Close the connection without an answer."""
    finish: str = "stop"


class Endpoint:
    """Records what it is asked."""

    def __init__(self, answer: Callable[[int, dict[str, Any]], Answer]) -> None:
        self.answer = answer
        self.bodies: list[dict[str, Any]] = []
        self.active = self.most_active = 0
        self.url = ""

    async def serve(self, ready: threading.Event, done: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0, backlog=512)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        ready.set()
        await done.wait()
        server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = next(
            (int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0
        )
        body = json.loads(await reader.readexactly(length)) if length else {}
        if head.startswith("get"):
            answer = Answer(body=b'{"object": "list", "data": [{"id": "scripted", "object": "model"}]}')
        else:
            self.bodies.append(body)
            answer = self.answer(len(self.bodies) - 1, body)
        self.active += 1
        self.most_active = max(self.most_active, self.active)
        await asyncio.sleep(answer.seconds)
        self.active -= 1
        if answer.reset:
            writer.transport.abort()
            return False
        writer.write(_response(answer))
        await writer.drain()
        return True


def _response(answer: Answer) -> bytes:
    body = answer.body
    if body is None and answer.status == 200:
        body = completion(answer.content, answer.finish)
    elif body is None:
        body = json.dumps({"error": {"message": f"status {answer.status}", "code": None}}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} X", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def completion(content: str | None, finish: str = "stop") -> bytes:
    """Return a chat completion of 100 + 200 tokens."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content}}
    usage = {"prompt_tokens": 100, "completion_tokens": 200, "total_tokens": 300}
    return json.dumps(
        {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted", "choices": [choice],
         "usage": usage}
    ).encode()  # fmt: skip


@contextmanager
def serving(answer: Callable[[int, dict[str, Any]], Answer]) -> Iterator[Endpoint]:
    """Serve in a thread of its own for the block."""
    endpoint, ready = Endpoint(answer), threading.Event()
    loop, done = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(
        target=loop.run_until_complete, args=(endpoint.serve(ready, done),), daemon=True
    )
    thread.start()
    ready.wait()
    try:
        yield endpoint
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(5)


@pytest.fixture
def endpoint() -> Iterator[Callable[..., Endpoint]]:
    """Start endpoints: `endpoint(answer)`, where `answer(number, body)` decides."""
    with ExitStack() as stack:
        yield lambda answer=lambda number, body: Answer(): stack.enter_context(serving(answer))


@pytest.fixture
def answers() -> type[Answer]:
    """The class of answers."""
    return Answer
