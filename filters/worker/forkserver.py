"""A process that has torch loaded, never touches CUDA, and forks one keeper with one worker per candidate.

Forking costs milliseconds where a new interpreter costs seconds, and a CUDA context does not survive
a fork, so the parent of all workers must not have one. Started as
`python -m filters.worker.forkserver CONTROL_FD CONFINEMENT [--compile]`; speaks over a packet socket:

    <- "ready"
    -> the scratch folder of a new worker, with three descriptors: channel, log, leash
    -> "import" and names of modules to load, a line each, without descriptors

It ends when the control socket closes, and the keepers end with it.
"""

import contextlib
import gc
import os
import resource
import signal
import socket
import sys
from pathlib import Path

from filters.sandbox import namespaces
from filters.sandbox.confinement import Confinement
from filters.sandbox.syscalls import die_with_parent
from filters.worker.keeper import Assignment, keep

_FILE_BYTES_MAX = 512 << 20
"""Largest file that a candidate may write, standard output included; a precompiled header takes 150 MB."""
_MESSAGE_BYTES_MAX = 1 << 17
_FURTHER_TASKS = 4096
"""Processes and threads that all workers together may add to those of this user."""


def main() -> None:
    """Confine this process, load what every child needs, then serve."""
    die_with_parent(signal.SIGKILL)
    control = socket.socket(fileno=int(sys.argv[1]))
    confinement = Confinement.from_json(sys.argv[2])
    _limit_resources()  # first, while /proc still shows every process of this user
    confinement.confine_server()
    import filters.worker.session
    from filters.worker.vector_math import choose_kernels

    choose_kernels()
    if "--compile" in sys.argv:
        filters.worker.session.preload_compiler()
    _share_what_is_loaded()
    serve(control, confinement)


def serve(control: socket.socket, confinement: Confinement) -> None:
    """Fork on request until the control socket closes."""
    from filters.worker.session import preload

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers report by themselves; nobody waits for them
    fork = namespaces.fork_init if confinement.namespaces else os.fork
    control.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, _MESSAGE_BYTES_MAX, 3)
        if not message:
            return
        if not descriptors:
            preload(message.decode().splitlines()[1:])
            _share_what_is_loaded()
            continue
        with contextlib.suppress(BlockingIOError):  # no more processes: the leash closes, the engine hears it
            if fork() == 0:
                channel, log, leash = descriptors
                scratch = Path(message.decode())
                keep(Assignment(scratch=scratch, channel=channel, log=log, leash=leash), confinement)
        for descriptor in descriptors:
            os.close(descriptor)


def _share_what_is_loaded() -> None:
    """Keep the garbage collector from touching, and so copying, what all children share."""
    gc.collect()
    gc.freeze()


def _limit_resources() -> None:
    """Set limits that all workers inherit; none is a size of memory, which the driver reserves at will."""
    resource.setrlimit(resource.RLIMIT_CORE, (1, 1))  # 0 would not keep a core from a program that takes it
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES_MAX, _FILE_BYTES_MAX))
    tasks = _own_tasks() + _FURTHER_TASKS
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if hard == resource.RLIM_INFINITY or tasks < hard:
        resource.setrlimit(resource.RLIMIT_NPROC, (tasks, tasks))


def _own_tasks() -> int:
    """Return how many processes and threads of this user there are; the kernel counts both."""
    total = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == os.getuid():
                total += len(os.listdir(process / "task"))
        except OSError:
            continue  # it has ended
    return total


if __name__ == "__main__":
    main()
