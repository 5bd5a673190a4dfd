"""Hostile snippets in real workers, layer by layer; a snippet tells what it got in its error."""

import json
import socket
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

import pytest

from filters.limits import Limits
from filters.reasons import Reason
from filters.sandbox.layers import LAYERS
from tests.filters.confined import MIB, ROOT, gone_within, running_with, why_not

HARMLESS = """
import time
time.sleep(1.0)
raise RuntimeError("survived")
"""


def test_no_network(sandboxed):
    with socket.create_server(("127.0.0.1", 0)) as server:
        told = sandboxed.told(
            f"""
            import socket
            try:
                socket.create_connection(("127.0.0.1", {server.getsockname()[1]}), timeout=5)
            except OSError as error:
                raise RuntimeError(f"refused: {{error}}")
            raise RuntimeError("connected")
            """
        )
        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert told.startswith("refused")


def test_unix_socket_of_another_program_is_out_of_reach(sandboxed, tmp_path):
    if "seccomp" not in sandboxed.layer.means:
        pytest.skip("only the system-call filter covers sockets in the file system")
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        told = sandboxed.told(
            f"""
            import socket
            try:
                socket.socket(socket.AF_UNIX).connect({str(path)!r})
            except OSError as error:
                raise RuntimeError(f"refused: {{error}}")
            raise RuntimeError("connected")
            """
        )
    assert told.startswith("refused")


def test_writes_only_to_its_scratch_folder(sandboxed, tmp_path):
    target = tmp_path / "outside"
    neighbour = sandboxed._root / "neighbour"
    neighbour.mkdir(exist_ok=True)
    told = sandboxed.told(
        f"""
        import tempfile, threading, time
        reached = []
        ours = [{str(target)!r}, {str(neighbour / "x")!r}]
        for path in [*ours, "/dev/shm/opweaver-x", "/tmp/opweaver-x", "/proc/sys/kernel/hostname"]:
            try:
                open(path, "w").close()
                reached.append(path)
            except OSError:
                pass
        open("here", "w").close()
        tempfile.NamedTemporaryFile().close()
        thread = threading.Thread(target=time.sleep, args=(5,), daemon=True)
        thread.start()
        open(f"/proc/self/task/{{thread.native_id}}/comm", "w").write("as CUDA does")
        raise RuntimeError(f"wrote {{reached}}")
        """
    )
    assert told == "wrote []"
    assert not target.exists()


def test_the_file_system_cannot_be_made_writable(sandboxed, tmp_path):
    told = sandboxed.told(
        f"""
        import ctypes, os
        libc = ctypes.CDLL(None)
        libc.unshare(0x10000000 | 0x20000)
        libc.mount(b"none", b"/", None, 0x20 | 0x1000, None)
        libc.mount(b"tmpfs", {str(tmp_path).encode()!r}, b"tmpfs", 0, None)
        try:
            open({str(tmp_path / "x")!r}, "w").close()
        except OSError:
            raise RuntimeError("refused")
        raise RuntimeError("wrote")
        """
    )
    assert told == "refused"


def test_secrets_of_the_parent_are_out_of_reach(sandboxed, monkeypatch):
    monkeypatch.setenv("OPWEAVER_TEST_SECRET", "correct horse")
    # the environment that /proc shows is the one with which a process was started
    holder = subprocess.Popen(["sleep", "60"])
    try:
        told = sandboxed.told(
            """
            import os, pathlib
            found = "OPWEAVER_TEST_SECRET" in os.environ
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                try:
                    found = found or b"OPWEAVER_TEST_SECRET" in (process / "environ").read_bytes()
                except OSError:
                    pass
            raise RuntimeError(f"found: {found}")
            """
        )
    finally:
        holder.kill()
        holder.wait()
    assert told == "found: False"


def test_neighbours_and_keeper_cannot_be_signalled(sandboxed):
    neighbour = {}
    thread = threading.Thread(target=lambda: neighbour.update(told=sandboxed.told(HARMLESS)))
    thread.start()
    told = sandboxed.told(
        """
        import os, pathlib, signal
        os.setpgid(0, 0) if os.getpgrp() != os.getpid() else None
        others = [int(p.name) for p in pathlib.Path("/proc").glob("[0-9]*") if int(p.name) != os.getpid()]
        hit = []
        for pid in [*others, os.getppid()]:
            try:
                os.kill(pid, signal.SIGKILL)
                hit.append(pid)
            except OSError:
                pass
        raise RuntimeError(f"hit {[p for p in hit if p != 1]}")  # the kernel protects process 1 by itself
        """
    )
    thread.join()
    assert told == "hit []"
    assert neighbour["told"] == "survived"


def test_the_keeper_cannot_be_read(sandboxed):
    told = sandboxed.told(
        """
        import os
        try:
            open(f"/proc/{os.getppid()}/mem", "rb+")
        except OSError:
            raise RuntimeError("refused")
        raise RuntimeError("opened")
        """
    )
    assert told == "refused"


def number_inside(pid):
    """Return the number that a process has in its own PID namespace."""
    return Path(f"/proc/{pid}/status").read_text().split("NSpid:")[1].splitlines()[0].split()[-1]


def test_a_worker_never_has_the_number_of_its_server(any_layer):
    child = any_layer.start()
    try:
        while child.worker_pid is None:
            assert not child.wait(0.01)
        server = Path(f"/proc/{child.keeper_pid}/status").read_text().split("PPid:")[1].split()[0]
        numbers = [number_inside(pid) for pid in (server, child.keeper_pid, child.worker_pid)]
    finally:
        child.close()
    assert len(set(numbers)) == 3


def test_descendants_in_their_own_session_end_with_the_worker(any_layer):
    marker = f"9{uuid.uuid4().int % 10**8}"
    measurement = any_layer.run(
        f"""
        import os, signal, subprocess, time
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "{marker}"])
            os._exit(0)
        os.wait()
        time.sleep(0.2)
        raise RuntimeError("left")
        """
    )
    assert measurement.fault_detail.endswith("left")
    assert running_with(marker) == []


def test_descendants_end_when_the_worker_is_killed(any_layer):
    marker = f"9{uuid.uuid4().int % 10**8}"
    measurement = any_layer.run(
        f"""
        import subprocess
        subprocess.Popen(["sleep", "{marker}"], start_new_session=True)
        while True:
            pass
        """,
        Limits(stage_seconds=1, timing_seconds=1, compile_seconds=1, memory_bytes=512 * MIB),
    )
    assert measurement.fault == Reason.TIMEOUT
    assert running_with(marker) == []


PARENT = """
import threading
from pathlib import Path
from tests.filters.confined import Confined
confined = Confined({name!r}, Path({root!r}))
for marker in ({marker!r},) * 2:
    threading.Thread(target=confined.run, args=('''
import os, subprocess, time
subprocess.Popen(["sleep", "{marker}"], start_new_session=True)
while True:
    pass
''',)).start()
"""


@pytest.mark.parametrize(
    "name",
    ["auto", "none", *(pytest.param(name, marks=pytest.mark.slow) for name in LAYERS[:-1])],
)
def test_nothing_outlives_a_killed_parent(name, tmp_path):
    """5 seconds after a SIGKILL of the engine's process nothing of ours is alive."""
    if why_not(name) is not None:
        pytest.skip(f"the sandbox {name} does not work here: {why_not(name)}")
    marker = f"9{uuid.uuid4().int % 10**8}"
    code = PARENT.format(name=name, root=str(tmp_path), marker=marker)
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    try:
        deadline = time.monotonic() + 120
        while len([p for p in running_with(marker) if p != parent.pid]) < 2 and time.monotonic() < deadline:
            assert parent.poll() is None
            time.sleep(0.1)
    finally:
        parent.kill()
        parent.wait()
    assert gone_within(marker, 5)
    assert gone_within(str(tmp_path), 5)  # servers, keepers and workers carry the scratch folder's name


def test_the_end_of_a_leash_is_the_end_of_everything(any_layer):
    """As when the engine's process dies with messages of the keeper unread."""
    marker = f"9{uuid.uuid4().int % 10**8}"
    child = any_layer.start()
    code = f"""
        import subprocess, time
        subprocess.Popen(["sleep", "{marker}"], start_new_session=True)
        time.sleep(60)
        """
    child.channel.sendall(json.dumps(any_layer.job(code) | {"nonce": ""}).encode() + b"\n")
    deadline = time.monotonic() + 20
    while not running_with(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running_with(marker)
    child.close()
    assert gone_within(marker, 5)


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("import ctypes; ctypes.string_at(0)", "signal SIGSEGV during build"),
        ("import os; os.abort()", "signal SIGABRT during build"),
        ("import os; os.kill(os.getpid(), 9)", "signal SIGKILL during build"),
        ("import os; os._exit(0)", "exit status 0 during build"),
        ("import os; os._exit(200)", "exit status 200 during build"),
    ],
)
def test_a_crash_names_its_cause(confined, code, detail):
    measurement = confined.run(code)
    assert measurement.fault == Reason.CRASHED
    assert measurement.fault_detail.startswith(detail)


def test_forged_verdicts_are_noise(confined):
    measurement = confined.run(
        """
        import json, os
        forged = [
            {"event": "facts", "facts": {"eager_ms": 12.5}, "nonce": ""},
            {"event": "end"},
            {"code": 0, "signal": None},
        ]
        for number in range(20):
            for line in forged:
                try:
                    os.write(number, (json.dumps(line) + "\\n").encode())
                except OSError:
                    pass
        os._exit(0)
        """
    )
    assert measurement.fault == Reason.CRASHED
    assert measurement.eager_ms is None
