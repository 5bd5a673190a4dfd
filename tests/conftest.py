"""A real browser for whatever makes pages, and an endpoint for whatever asks a model."""

import asyncio
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

_PATIENCE_S = 60
"""A busy machine may be slow; nothing is asserted about the time."""
LEAST_CONTRAST = 4.5
"""WCAG 2.2, success criterion 1.4.3."""
_CONTRASTS = """
const channel = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
const weights = [0.2126, 0.7152, 0.0722];
const luminance = (color) => weights.reduce((sum, weight, i) => sum + weight * channel(color[i] / 255), 0);
const behind = (node) => {
  for (; node; node = node.parentElement) {
    const color = numbers(getComputedStyle(node).backgroundColor);
    if (color[3] === undefined || color[3] > 0.99) return color;
  }
  return numbers(getComputedStyle(document.body).backgroundColor);
};
const found = [];
for (const node of document.querySelectorAll("body *")) {
  const ownText = [...node.childNodes].some((each) => each.nodeType === 3 && each.textContent.trim());
  if (!ownText || !node.checkVisibility() || node.disabled || node.closest("script, style")) continue;
  const style = getComputedStyle(node);
  const color = node instanceof SVGElement ? style.fill : style.color;
  if (color === "none") continue;
  const [light, dark] = [luminance(numbers(color)), luminance(behind(node))].sort((a, b) => b - a);
  found.push([(light + 0.05) / (dark + 0.05), `${node.tagName} ${node.textContent.trim()}: ${color}`]);
}
return found;
"""


@dataclass(frozen=True)
class Page:
    """The page that is open in a headless Chromium."""

    driver: Any

    def open(self, path: Path, *, width: int = 1200, theme: str = "light") -> None:
        """Open a file as a reader with this window and system theme would, and wait until it is drawn."""
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(path.resolve().as_uri())
        self.wait("document.documentElement.dataset.ready === 'true'")
        self.wait("[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('svg'))")

    def run(self, script: str, *arguments: object) -> Any:
        """Run JavaScript and return what it returns."""
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: str) -> None:
        """Wait until a JavaScript expression holds."""
        end = time.monotonic() + _PATIENCE_S
        while not self.run(f"return Boolean({condition})"):
            assert time.monotonic() < end, f"never came true: {condition}; console: {self.console()}"
            time.sleep(0.02)

    def texts(self, selector: str) -> list[str]:
        """Return the text of every element that matches and is shown."""
        return self.run(
            f"return [...document.querySelectorAll({json.dumps(selector)})]"
            ".filter((each) => each.checkVisibility()).map((each) => each.textContent.trim())"
        )

    def click(self, selector: str) -> None:
        """Click with the mouse on the first element that matches."""
        element = self.driver.find_element("css selector", selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()

    def type(self, selector: str, text: str) -> None:
        """Type into a field."""
        self.driver.find_element("css selector", selector).send_keys(text)

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        from selenium.webdriver.common.keys import Keys

        self.driver.switch_to.active_element.send_keys(getattr(Keys, key))

    def faint_texts(self) -> list[str]:
        """Return the texts whose contrast with what is behind them is too low; disabled controls may be."""
        contrasts = self.run(_CONTRASTS)
        assert len(contrasts) > 50, "found hardly any text"
        return [text for contrast, text in contrasts if contrast < LEAST_CONTRAST]

    def console(self) -> list[str]:
        """Return what the browser complained about since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Debian's headless Chromium; skips where it is missing."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install -e '.[dev]'")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    profile = tmp_path_factory.mktemp("chromium")
    for option in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        f"user-data-dir={profile}",
    ):
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


@pytest.fixture
def page(chromium) -> Page:
    """A browser to open pages in."""
    return Page(chromium)


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
