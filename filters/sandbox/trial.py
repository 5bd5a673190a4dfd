"""Tries every means of confinement in a child process and tells which ones hold.

Started as `python -m filters.sandbox.trial SCRATCH_ROOT {enter,entered}`, plainly and inside bubblewrap;
prints one JSON object: means -> why it does not work, or null. Nothing is concluded from versions: some
kernels and containers refuse what their version promises.
"""

import importlib.util
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from filters.sandbox import landlock, namespaces, seccomp
from filters.sandbox.syscalls import give_up_privileges

Attempt = Callable[[], None]
_NAME = Path("/proc/thread-self/comm")
"""CUDA gives up where it cannot write the names of its threads."""


def main() -> None:
    """Try the three means, each in a child of its own."""
    root = Path(sys.argv[1])
    enter = sys.argv[2] == "enter"
    attempts: dict[str, Attempt] = {
        "namespaces": lambda: _try_namespaces(root, enter),
        "landlock": lambda: _try_landlock(root, enter),
        "seccomp": _try_seccomp,
    }
    print(json.dumps({name: outcome_in_child(attempt, os.fork) for name, attempt in attempts.items()}))


def outcome_in_child(attempt: Attempt, fork: Callable[[], int]) -> str | None:
    """Run an attempt in a forked child; return None if it went well, else why not."""
    read_end, write_end = os.pipe()
    child = fork()
    if child == 0:
        outcome = b""
        try:
            attempt()
        except BaseException as error:  # a child has nobody above it; the parent is told
            outcome = (str(error) or type(error).__name__).encode()
        os.write(write_end, outcome[:4000])
        os._exit(bool(outcome))
    os.close(write_end)
    with os.fdopen(read_end, "rb") as reader:
        outcome = reader.read()
    _, status = os.waitpid(child, 0)
    if outcome or status == 0:
        return outcome.decode() or None
    return f"the attempt ended with wait status {status}"


def _try_namespaces(root: Path, enter: bool) -> None:
    scratch = Path(tempfile.mkdtemp(dir=root))
    if enter:
        namespaces.enter(root)
    namespaces.mount_proc()

    def first_process() -> None:
        namespaces.settle(root, scratch)
        if os.getpid() != 1:
            raise OSError("no PID namespace of its own")
        namespaces.let_threads_be_named()
        _check_files(root, scratch)
        _NAME.write_text("trial")

    why_not = outcome_in_child(first_process, namespaces.fork_init)
    if why_not is not None:
        raise OSError(why_not)


def _try_landlock(root: Path, enter: bool) -> None:
    scratch = Path(tempfile.mkdtemp(dir=root))
    give_up_privileges()
    landlock.restrict([scratch])
    _check_files(root, scratch)
    if enter:  # else bubblewrap has made /proc read-only, until each worker gets its own
        _NAME.write_text("trial")


def _check_files(root: Path, scratch: Path) -> None:
    """Writing works inside and fails outside; what a worker has to read can be read."""
    (scratch / "inside").write_text("")
    try:
        (root / "outside").write_text("")
    except OSError:
        pass
    else:
        raise OSError("files outside the scratch folder can be written")
    torch = importlib.util.find_spec("torch")
    for path in (sys.executable, __file__, torch.origin if torch is not None else None):
        if path is not None:
            with Path(path).open("rb") as readable:
                readable.read(1)


def _try_seccomp() -> None:
    give_up_privileges()
    seccomp.restrict(signals=True)
    try:
        socket.socket(socket.AF_INET).close()
    except PermissionError:
        return
    raise OSError("sockets can be opened")


if __name__ == "__main__":
    main()
