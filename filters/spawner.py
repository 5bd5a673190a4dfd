"""The engine's side of a forkserver: start it, ask for workers, signal them, hear of their ends."""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from filters.errors import SandboxFault
from filters.sandbox.layers import Layer

_READY_SECONDS = 180
_CLOSE_SECONDS = 1
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
"""Variables that workers may see; everything else (keys, tokens, proxies) stays with the engine."""

_CREDENTIALS = struct.Struct("3i")  # pid, user, group of the sender, filled in by the kernel


@dataclass(eq=False)
class Child:
    """One worker with its keeper. Process ids are as seen from here, whatever namespace they live in."""

    channel: socket.socket
    leash: socket.socket
    keeper_pid: int | None = None
    worker_pid: int | None = None
    base_bytes: int = 0
    """Resident memory with which the worker started, most of it shared with the server."""
    ended: bool = False
    exit_code: int | None = None
    exit_signal: int | None = None

    def signal(self, number: int) -> None:
        """Signal every process of the worker; no effect once it has ended."""
        with suppress(OSError):  # the keeper is gone, and all below it with it
            self.leash.send(bytes([number]))

    def listen(self) -> None:
        """Take what the keeper has sent so far."""
        while not self.ended and select.select([self.leash], [], [], 0)[0]:
            self._take_one()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the worker and all its descendants; False if it takes longer."""
        deadline = monotonic() + seconds
        while not self.ended and select.select([self.leash], [], [], max(0, deadline - monotonic()))[0]:
            self._take_one()
        return self.ended

    def close(self) -> None:
        """Let go of the sockets. A worker that still runs is killed by its keeper."""
        self.channel.close()
        self.leash.close()

    def how_it_ended(self) -> str:
        """Say it in words: `signal SIGSEGV` or `exit status 3`."""
        if self.exit_signal is not None:
            return f"signal {signal.Signals(self.exit_signal).name}"
        return "no answer" if self.exit_code is None else f"exit status {self.exit_code}"

    def _take_one(self) -> None:
        try:
            message, ancillary, _, _ = self.leash.recvmsg(4096, socket.CMSG_SPACE(_CREDENTIALS.size))
        except ConnectionResetError:
            return  # it ended without reading our last signal; what it said before comes next
        if not message:
            self.ended = True
            return
        fields = json.loads(message)
        if "role" in fields:
            pid, _, _ = _CREDENTIALS.unpack(ancillary[0][2])
            if fields["role"] == "keeper":
                self.keeper_pid = pid
            else:
                self.worker_pid, self.base_bytes = pid, fields["resident_bytes"]
        else:
            self.exit_code, self.exit_signal = fields["code"], fields["signal"]
            self.ended = True


class Spawner:
    """One forkserver with its own hash seed, confined by a layer."""

    def __init__(self, hash_seed: int, layer: Layer, scratch_root: Path, *, compiles: bool) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        confinement = layer.confinement(scratch_root).to_json()
        command = [*layer.prefix(scratch_root), sys.executable, "-m", "filters.worker.forkserver"]
        command += [str(theirs.fileno()), confinement, *(["--compile"] if compiles else [])]
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._started = threading.Event()
        self._last_words = ""
        # a thread of its own: the kernel ends the server with the very thread that started it
        self._thread = threading.Thread(
            target=self._attend, args=(command, _environment(hash_seed, scratch_root), theirs), daemon=True
        )
        self._thread.start()
        self._started.wait()

    def wait_ready(self) -> None:
        """Wait until the server has loaded torch. Raises SandboxFault if it does not come up."""
        readable, _, _ = select.select([self._control], [], [], _READY_SECONDS)
        if readable and self._control.recv(16):
            return
        self.close()
        raise SandboxFault(
            f"the worker server did not start: {self._last_words or 'no message'}. Run `opweaver doctor`."
        )

    def preload(self, modules: Sequence[str]) -> None:
        """Have the server import modules, which workers then share. Raises SandboxFault if it is gone."""
        self._hand_over("\n".join(["import", *modules]), [])

    def spawn(self, scratch: Path, log_fd: int) -> Child:
        """Start a worker whose files live under `scratch`. Raises SandboxFault if the server is gone."""
        channel, their_channel = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        leash, their_leash = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        leash.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with their_channel, their_leash:
            self._hand_over(str(scratch), [their_channel.fileno(), log_fd, their_leash.fileno()])
        return Child(channel, leash)

    def _hand_over(self, message: str, descriptors: list[int]) -> None:
        with self._lock:
            try:
                socket.send_fds(self._control, [message.encode()], descriptors)
            except OSError as error:
                raise SandboxFault(
                    f"the worker server is gone ({error}). Run the same command again."
                ) from error

    def close(self) -> None:
        """End the server and every worker."""
        self._control.close()
        self._thread.join(_CLOSE_SECONDS)
        if self._process is not None:
            self._process.kill()
        self._thread.join()

    def _attend(self, command: list[str], environment: dict[str, str], theirs: socket.socket) -> None:
        """Start the server and wait for its end."""
        try:
            with theirs:
                self._process = subprocess.Popen(
                    command,
                    pass_fds=[theirs.fileno()],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    cwd=Path(__file__).resolve().parent.parent,
                )
        except OSError as error:
            self._last_words = str(error)
            return
        finally:
            self._started.set()
        _, errors = self._process.communicate()
        self._last_words = (errors.decode(errors="replace").strip().splitlines() or [""])[-1]


def _environment(hash_seed: int, scratch_root: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return kept | {
        "TMPDIR": str(scratch_root),
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",  # asking for a device must not initialise CUDA before the fork
        "TOKENIZERS_PARALLELISM": "false",
    }
