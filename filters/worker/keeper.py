"""The process between the server and one worker: starts it, signals it, ends all that it has started.

It runs only our code. Where there are PID namespaces it is the first process of the worker's, so that its
end is the end of everything in there; elsewhere it adopts the orphans and hunts them down. It hangs on
the leash, a packet socket to the process that holds the engine:

    -> one byte: the number of a signal for all processes below this one
    <- {"role": "keeper"}                           from the keeper itself, so that the kernel adds its pid
    <- {"role": "worker", "resident_bytes": 4096}   likewise
    <- {"code": 0 or null, "signal": null or 9}     how the worker ended, once nothing is left below

When the leash closes (the engine's process has died) or the server ends, it kills everything and ends.
"""

import contextlib
import json
import os
import select
import signal
import socket
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filters.sandbox.confinement import Confinement
from filters.sandbox.processes import descendants, resident_bytes
from filters.sandbox.syscalls import adopt_orphans, die_with_parent, set_dumpable

OUR_FAILURE = 70
"""Exit status of a worker that failed in our code (EX_SOFTWARE), not in the candidate's."""
_REAP_SECONDS = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What the server hands to a keeper: a folder and three descriptors."""

    scratch: Path
    channel: int
    log: int
    leash: int


def keep(assignment: Assignment, confinement: Confinement) -> None:
    """Turn this freshly forked process into a keeper; never returns."""
    code = OUR_FAILURE
    try:
        os.setsid()
        _redirect(assignment.log)
        _close_all_but(0, 1, 2, assignment.channel, assignment.leash)
        _Keeper(assignment, confinement).run()
        code = 0
    except BaseException:  # nothing may unwind into the server's frames, of which this is a copy
        traceback.print_exc()  # into the log, whose tail the engine reports
    finally:
        os._exit(code)


class _Keeper:
    def __init__(self, assignment: Assignment, confinement: Confinement) -> None:
        self._assignment = assignment
        self._confinement = confinement
        self._leash = socket.socket(fileno=assignment.leash)
        self._status: int | None = None

    def run(self) -> None:
        """Start the worker and stay until nothing is left of it."""
        wake = self._prepare()
        self._tell(role="keeper")
        self._worker = os.fork()
        if self._worker == 0:
            _work(self._assignment, self._leash, self._confinement)
        os.close(self._assignment.channel)
        try:
            while self._status is None and self._obey(wake):
                self._reap()
        finally:
            while self._reap():
                self._signal_all(signal.SIGKILL)
                time.sleep(_REAP_SECONDS)
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        self._tell(code=code if code >= 0 else None, signal=-code if code < 0 else None)

    def _prepare(self) -> int:
        """Return a descriptor that becomes readable when a child or the server has ended."""
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        self._confinement.confine_keeper(self._assignment.scratch)
        if self._confinement.namespaces:
            die_with_parent(signal.SIGKILL)
        else:
            adopt_orphans()
            die_with_parent(signal.SIGTERM)
        set_dumpable(False)  # the worker must not trace its keeper
        return wake_read

    def _obey(self, wake: int) -> bool:
        """Wait for something to happen; False if it is time to end."""
        readable, _, _ = select.select([self._leash.fileno(), wake], [], [])
        if wake in readable and signal.SIGTERM in os.read(wake, 4096):
            return False
        if self._leash.fileno() in readable:
            try:
                order = self._leash.recv(1)
            except ConnectionResetError:
                return False
            if not order:
                return False
            self._signal_all(order[0])
        return True

    def _reap(self) -> bool:
        """Take the exits that have come; False once no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._worker:
                self._status = status

    def _signal_all(self, number: int) -> None:
        if self._confinement.namespaces:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, number)  # everything in the namespace but its first process
        else:
            _signal_descendants(number)

    def _tell(self, **fields: Any) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # then the leash is closed as well
            self._leash.send(json.dumps(fields).encode())


def _signal_descendants(number: int) -> None:
    """Signal whole groups where possible: the kernel lets no member fork meanwhile."""
    done = set()
    for pid in descendants(os.getpid()):
        with contextlib.suppress(ProcessLookupError):
            group = os.getpgid(pid)
            if group == os.getpgrp():
                os.kill(pid, number)  # a worker that has not made its own group yet
            elif group not in done:
                done.add(group)
                os.killpg(group, number)


def _work(assignment: Assignment, leash: socket.socket, confinement: Confinement) -> None:
    """Turn the keeper's child into the worker; never returns."""
    code = OUR_FAILURE
    try:
        os.setsid()
        die_with_parent(signal.SIGKILL)
        set_dumpable(True)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        hello = {"role": "worker", "resident_bytes": resident_bytes(os.getpid())}
        leash.send(json.dumps(hello).encode())
        channel = socket.socket(fileno=assignment.channel)
        _close_all_but(0, 1, 2, assignment.channel)
        os.chdir(assignment.scratch / "work")
        os.environ.update(
            HOME=f"{assignment.scratch}/home",
            TMPDIR=f"{assignment.scratch}/home",
            TORCHINDUCTOR_CACHE_DIR=f"{assignment.scratch}/inductor",
            TRITON_CACHE_DIR=f"{assignment.scratch}/inductor/triton",
        )
        tempfile.tempdir = None  # the server's answer, remembered
        confinement.confine_worker(assignment.scratch)
        from filters.worker.session import run

        run(channel)
        code = 0
    except BaseException:  # as above; SystemExit of a candidate among them
        traceback.print_exc()
    finally:
        os._exit(code)


def _redirect(log: int) -> None:
    """Standard input is empty, standard output and error go to the log."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _close_all_but(*kept: int) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):  # the listing's own descriptor is closed already
                os.close(int(name))
