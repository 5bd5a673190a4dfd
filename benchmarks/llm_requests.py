"""How much time asking adds to what the endpoint takes: `python benchmarks/llm_requests.py`.

A server in a process of its own answers every request after the same time. Printed is the wall time of
`opweaver compose` relative to the time that the server alone needs for as many requests at that concurrency,
for a first run and for a second one, which sends none.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

TASK = """import torch
import torch.nn as nn

BATCH_SIZE = 96
FEATURES = 1024


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.tanh(self.linear(x))


def get_inputs():
    return [torch.randn(BATCH_SIZE, FEATURES)]


def get_init_inputs():
    return [FEATURES]
"""


def serve(seconds: float, pipe: Connection) -> None:
    """Answer every request after `seconds`; send the port, then how many requests came when asked."""
    message = {"role": "assistant", "content": f"```python\n{TASK}```"}
    usage = {"prompt_tokens": 1200, "completion_tokens": 300}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    body = json.dumps({"choices": choices, "usage": usage}).encode()
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )
    count = 0

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        with contextlib.suppress(asyncio.IncompleteReadError):  # the client is done
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                await reader.readexactly(next(int(h[15:]) for h in head if h[:15] == b"content-length:"))
                count += 1
                await asyncio.sleep(seconds)
                writer.write(answer)

    async def run() -> None:
        server = await asyncio.start_server(connection, "127.0.0.1", 0, backlog=1024)
        pipe.send(server.sockets[0].getsockname()[1])
        while await asyncio.to_thread(pipe.recv):
            pipe.send(count)

    asyncio.run(run())


def timed(act: Callable[[], object]) -> float:
    """Return the seconds that it takes."""
    began = time.monotonic()
    act()
    return time.monotonic() - began


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=2.0, help="time per answer")
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(options.seconds, theirs), daemon=True)
    server.start()
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{ours.recv()}/v1",
        "OPWEAVER_LLM__CONCURRENCY": str(options.concurrency),
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-c", "from flows.cli import main; main()", "compose",
            "--composer", "llm", "--model", "scripted", "--out", f"{folder}/c.parquet", "--count",
        ]  # fmt: skip

        def compose(count: int) -> None:
            subprocess.run([*command, str(count)], env=environment, check=True, cwd=Path.cwd())

        start = timed(lambda: compose(1))
        alone = options.count / options.concurrency * options.seconds
        for name in ("first run", "second run"):
            seconds = timed(lambda: compose(options.count)) - start
            ours.send(True)
            print(
                f"{name}: {seconds:.1f} s without {start:.1f} s of start-up, {seconds / alone:.2f} x the "
                f"server's own {alone:.1f} s, {ours.recv()} requests so far"
            )
    server.terminate()


if __name__ == "__main__":
    main()
