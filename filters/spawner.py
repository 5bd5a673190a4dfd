"""The parent's side of a forkserver: start it, ask for children, signal them, hear of their ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from filters.errors import SandboxFault

_READY_SECONDS = 180
_PASSED_ON = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "CC",
    "CXX",
    "TRITON_PTXAS_PATH",
    "TRITON_LIBCUDA_PATH",
)
"""Variables that workers may see; everything else (keys, tokens, proxies) stays with the parent."""


@dataclass(eq=False)
class Child:
    """One worker process, known by its token. `ended` is set once its exit has been heard of."""

    token: int
    channel: socket.socket
    spawned: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    pid: int | None = None
    exit_code: int | None = None
    exit_signal: int | None = None

    def how_it_ended(self) -> str:
        """Say it in words: `signal SIGSEGV` or `exit status 3`."""
        if self.exit_signal is not None:
            return f"signal {signal.Signals(self.exit_signal).name}"
        return f"exit status {self.exit_code}"


class Spawner:
    """One forkserver with its own hash seed."""

    def __init__(self, hash_seed: int, *, compiles: bool) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "filters.worker.forkserver", str(theirs.fileno())]
        if compiles:
            command.append("--compile")
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            env=_environment(hash_seed),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd=Path(__file__).resolve().parent.parent,
        )
        theirs.close()
        self._control = ours
        self._children: dict[int, Child] = {}
        self._next_token = 0
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._dead = threading.Event()
        threading.Thread(target=self._listen, name="forkserver-events", daemon=True).start()

    def wait_ready(self) -> None:
        """Wait until the server has loaded torch. Raises SandboxFault if it does not come up."""
        if self._ready.wait(_READY_SECONDS) and not self._dead.is_set():
            return
        self.close()
        assert self._process.stderr is not None
        last = self._process.stderr.read().decode(errors="replace").strip().splitlines()[-1:] or [
            "no message"
        ]
        raise SandboxFault(f"the worker server did not start: {last[0]}. Run `opweaver doctor`.")

    def spawn(self, scratch: Path, log_fd: int) -> Child:
        """Fork a worker whose files live under `scratch`. Raises SandboxFault if the server is gone."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with self._lock:
            child = Child(self._next_token, ours)
            self._next_token += 1
            self._children[child.token] = child
            request = json.dumps({"op": "spawn", "token": child.token, "scratch": str(scratch)}).encode()
            try:
                socket.send_fds(self._control, [request], [theirs.fileno(), log_fd])
            except OSError as error:
                raise SandboxFault(
                    f"the worker server is gone ({error}). Run the same command again."
                ) from error
            finally:
                theirs.close()
        return child

    def signal(self, child: Child, number: int) -> None:
        """Signal the child's process group; no effect once it has ended."""
        with self._lock:
            try:
                self._control.send(
                    json.dumps({"op": "signal", "token": child.token, "signal": number}).encode()
                )
            except OSError:
                return  # the server is gone, and its children died with it

    def close(self) -> None:
        """End the server and every child."""
        self._control.close()
        self._process.kill()
        self._process.wait()

    def _listen(self) -> None:
        """Take the server's messages until it ends; runs in a thread of its own."""
        while True:
            try:
                message = self._control.recv(4096)
            except OSError:
                message = b""
            if not message:
                break
            self._take(json.loads(message))
        self._dead.set()
        self._ready.set()
        for child in list(self._children.values()):
            child.spawned.set()
            child.ended.set()

    def _take(self, event: Mapping[str, int | str | None]) -> None:
        if event["op"] == "ready":
            self._ready.set()
            return
        child = self._children[int(event["token"] or 0)]
        if event["op"] == "spawned":
            child.pid = int(event["pid"] or 0)
            child.spawned.set()
            return
        child.exit_code = _number(event["code"])
        child.exit_signal = _number(event["signal"])
        del self._children[child.token]
        child.spawned.set()
        child.ended.set()


def _number(value: int | str | None) -> int | None:
    return None if value is None else int(value)


def _environment(hash_seed: int) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return kept | {
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # asking for a device must not initialise CUDA before the fork
        "TOKENIZERS_PARALLELISM": "false",
    }
