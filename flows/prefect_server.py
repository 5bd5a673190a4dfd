"""An API for Prefect's flows: the user's own server, or a temporary one that lives as long as the run.

Prefect's own ephemeral mode gives a first start 20 s (it takes 15 to 40 s on two cores), lets its server
write to the user's terminal, and leaves that server running when the run is killed. So we start the same
server ourselves: its output is kept back, its database lies in memory, and the kernel ends it together
with us. Whoever wants to keep the history of flows sets PREFECT_API_URL to a server of their own.

Prefect reads its settings when it is first imported, so nothing here imports it before they stand.
"""

import ctypes
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from flows.errors import InfrastructureError

START_SECONDS = 180
"""Limit of the server's start: 37 s were measured on two idle cores, this leaves room for busy ones."""
PR_SET_PDEATHSIG = 1
"""From linux/prctl.h: the signal that a process gets when its parent dies."""

QUIET = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",
    "PREFECT_INTERNAL_LOGGING_LEVEL": "CRITICAL",  # events that a busy server takes late
    "PREFECT_LOGGING_ROOT_LEVEL": "CRITICAL",  # "Still processing items" at the end, and other libraries
}
"""No telemetry, and no lines of Prefect's own: the run shows its progress itself."""

_SERVER = QUIET | {
    "PREFECT_SERVER_DATABASE_CONNECTION_URL": "sqlite+aiosqlite:///:memory:",
    "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
    "PREFECT_SERVER_MEMOIZE_BLOCK_AUTO_REGISTRATION": "false",
    "PREFECT_SERVER_UI_ENABLED": "false",
}


class PrefectServer:
    """Starts a temporary server in the background if one is needed; it ends with this process.

    Not earlier, because Prefect reports its last events while the interpreter shuts down: with the server
    gone it would try again and again, and say so.
    """

    def __init__(self, host: str = "127.0.0.1") -> None:
        """`host` is the address to listen at, where tasks on other machines report to it."""
        self._host = host
        for name, value in QUIET.items():
            os.environ.setdefault(name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Prefect warns where the home directory cannot be written to
            from prefect import settings
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None
        if settings.PREFECT_API_URL.value():
            _require_answer(settings.PREFECT_API_URL.value())
        else:
            self._start()

    def _start(self) -> None:
        self._port = _free_port(self._host)
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - open for as long as the server writes
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, self._host, str(self._port), str(os.getpid())],
            env=os.environ | _SERVER,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
            start_new_session=True,  # Ctrl-C in the terminal is for us alone
        )

    @contextmanager
    def api(self) -> Iterator[None]:
        """Let flows that are called in the block find the API; waits until the temporary server answers.

        The API that the environment or a Prefect profile names goes first. Raises InfrastructureError, also
        where the server goes away later; Prefect itself tries for some minutes before.
        """
        from httpx import HTTPError

        try:
            with self._temporary_api() if self._process is not None else nullcontext():
                yield
        except HTTPError as error:
            raise InfrastructureError(
                f"Prefect: its server stopped answering ({error}); run the same command again to go on"
            ) from error

    @contextmanager
    def _temporary_api(self) -> Iterator[None]:
        self._wait_until_healthy()
        _never_through_a_proxy(self._host)
        with self._settings.temporary_settings(
            {
                self._settings.PREFECT_API_URL: f"http://{self._host}:{self._port}/api",
                # A heartbeat tells a server that a run is alive; this server dies with the run.
                self._settings.PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
            }
        ):
            yield

    def _wait_until_healthy(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while not _healthy(self._host, self._port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self._output.seek(0)
                lines = self._output.read().decode(errors="replace").strip().splitlines()
                last = lines[-1].strip() if lines else "no message"
                raise InfrastructureError(
                    f"Prefect: its temporary server did not start ({last}); "
                    "run the same command again, or set PREFECT_API_URL to a server of your own"
                )
            time.sleep(0.1)


def _require_answer(url: str) -> None:
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        try:
            client.raise_for_api_version_mismatch()
        except RuntimeError as error:
            raise InfrastructureError(
                f"{url}: no usable Prefect server ({error}); "
                "start it, or unset PREFECT_API_URL to let a temporary one run"
            ) from None


def _healthy(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/api/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def _never_through_a_proxy(host: str) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), host]))


def _serve(host: str, port: str, parent: str) -> None:
    """Become the server, tied to the parent's life by the kernel; without scheduler and event store."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):
        return  # it has died already
    command = ["-P", "-m", "prefect", "server", "start", "--host", host, "--port", port]
    os.execv(sys.executable, [sys.executable, *command, "--no-services"])


if __name__ == "__main__":
    _serve(*sys.argv[1:])
