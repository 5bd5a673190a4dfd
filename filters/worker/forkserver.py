"""A process that has torch loaded, never touches CUDA, and forks one child per candidate.

Forking costs milliseconds where a new interpreter costs seconds, and a CUDA context does not survive
a fork, so the parent of all children must not have one. Started as
`python -m filters.worker.forkserver CONTROL_FD`; speaks JSON over a packet socket:

    -> {"op": "spawn", "token": 7, "scratch": DIR}    with two descriptors: channel, log
    -> {"op": "signal", "token": 7, "signal": 9}
    <- {"op": "ready"}
    <- {"op": "spawned", "token": 7, "pid": 123}
    <- {"op": "exited", "token": 7, "code": 0 or null, "signal": null or 9}

It ends, and takes all children along, when the control socket closes.
"""

import ctypes
import gc
import json
import os
import resource
import selectors
import signal
import socket
import sys
import traceback
from typing import Any

_PR_SET_PDEATHSIG = 1
OUR_FAILURE = 70
"""Exit status of a worker that failed in our code (EX_SOFTWARE), not in the candidate's."""
_FILE_BYTES_MAX = 1 << 30
"""Largest file that a candidate may write, standard output included."""


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class ForkServer:
    """The event loop: requests from the parent, exits of the children."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pids: dict[int, int] = {}

    def serve(self) -> None:
        """Serve until the control socket closes."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        selector = selectors.DefaultSelector()
        selector.register(self._control, selectors.EVENT_READ)
        selector.register(wake_read, selectors.EVENT_READ)
        self._tell(op="ready")
        while True:
            for key, _ in selector.select():
                if key.fileobj == wake_read:
                    os.read(wake_read, 4096)
                    self._reap()
                elif not self._serve_one():
                    self._kill_all()
                    return

    def _serve_one(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._control, 4096, 2)
        if not message:
            return False
        request = json.loads(message)
        if request["op"] == "spawn":
            self._spawn(request, descriptors)
        elif request["token"] in self._pids:
            _signal_group(self._pids[request["token"]], request["signal"])
        return True

    def _spawn(self, request: dict[str, Any], descriptors: list[int]) -> None:
        pid = os.fork()
        if pid == 0:
            _become_worker(request["scratch"], *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self._pids[request["token"]] = pid
        self._tell(op="spawned", token=request["token"], pid=pid)

    def _reap(self) -> None:
        for token, pid in list(self._pids.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del self._pids[token]
                _signal_group(pid, signal.SIGKILL)
                code = os.waitstatus_to_exitcode(status)
                self._tell(
                    op="exited",
                    token=token,
                    code=max(code, 0) if code >= 0 else None,
                    signal=-code if code < 0 else None,
                )

    def _kill_all(self) -> None:
        for pid in self._pids.values():
            _signal_group(pid, signal.SIGKILL)

    def _tell(self, **fields: Any) -> None:
        self._control.sendall(json.dumps(fields).encode())


def _signal_group(pid: int, number: int) -> None:
    """Signal the child's process group; before the child has made its group, the child alone."""
    try:
        os.killpg(pid, number)
    except ProcessLookupError:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return  # it has ended and was reaped


def _become_worker(scratch: str, channel_fd: int, log_fd: int) -> None:
    """Turn the forked child into a worker; never returns."""
    code = OUR_FAILURE
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        die_with_parent()
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log_fd, 1)
        os.dup2(log_fd, 2)
        channel = socket.socket(fileno=os.dup(channel_fd))
        _close_all_but(0, 1, 2, channel.fileno())
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES_MAX, _FILE_BYTES_MAX))
        os.chdir(f"{scratch}/work")
        os.environ.update(
            HOME=f"{scratch}/home",
            TMPDIR=f"{scratch}/home",
            TORCHINDUCTOR_CACHE_DIR=f"{scratch}/inductor",
            TRITON_CACHE_DIR=f"{scratch}/triton",
        )
        from filters.worker.session import run

        run(channel)
        code = 0
    except BaseException:
        traceback.print_exc()  # into the log, whose tail the parent reports
    finally:
        os._exit(code)


def _close_all_but(*kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # the listing's own descriptor, already closed


def main() -> None:
    """Load what every child needs, then serve."""
    die_with_parent()
    import filters.worker.session

    if "--compile" in sys.argv:
        filters.worker.session.preload_compiler()
    gc.collect()
    gc.freeze()
    ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
