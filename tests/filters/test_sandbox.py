"""Hostile snippets in real workers, layer by layer; a snippet tells what it got in its error."""

import contextlib
import json
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid
from pathlib import Path

import pytest

from composer.candidate import Candidate
from filters.conversation import Conversation
from filters.engine import Engine
from filters.errors import SandboxFault
from filters.exclusive import Exclusive
from filters.limits import Limits
from filters.policy import Policy
from filters.reasons import Reason
from filters.sandbox.layers import LAYERS, Layer, survey, usable
from filters.settings import FilterSettings
from filters.spawner import Spawner

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
LIMITS = Limits(stage_seconds=20, timing_seconds=20, compile_seconds=20, memory_bytes=512 * MIB)
HARMLESS = """
import time
time.sleep(1.0)
raise RuntimeError("survived")
"""


class Confined:
    """One worker server behind one layer."""

    def __init__(self, name, scratch_root):
        self.layer = usable(name)[0]
        self._root = scratch_root
        self._spawner = Spawner(0, self.layer, scratch_root, compiles=False)
        self._spawner.wait_ready()
        self._exclusive = Exclusive()

    def run(self, code, limits=LIMITS):
        """Run a snippet as the module level of a task; return the measurement."""
        scratch = self.scratch_folder()
        job = self.job(code)
        conversation = Conversation(self._spawner, scratch, job, limits, self._exclusive, threading.Event())
        conversation.hold()
        return conversation.measurement()

    def scratch_folder(self):
        scratch = self._root / uuid.uuid4().hex
        for name in ("work", "home"):
            (scratch / name).mkdir(parents=True)
        return scratch

    def start(self):
        """Start a worker that waits for its job."""
        scratch = self.scratch_folder()
        with (scratch / "log").open("w") as log:
            return self._spawner.spawn(scratch, log.fileno())

    def job(self, code):
        """Return what a worker is told to do."""
        return {
            "mode": "measure",
            "device": "cpu",
            "threads": 1,
            "card": None,
            "device_bytes": None,
            "last_try": True,
            "compile_backend": "aot_eager",
            "code": textwrap.dedent(code),
            "policy": Policy().model_dump(),
            "claim": {},
            "recorded_times": None,
        }

    def told(self, code, limits=LIMITS):
        """Run a snippet that raises RuntimeError(text); return the text."""
        measurement = self.run(code, limits)
        assert measurement.fault == "init_failed", measurement.fault_detail
        return measurement.fault_detail.removeprefix("import: RuntimeError: ")

    def close(self):
        self._spawner.close()


def why_not(name):
    return next((layer.why_not for layer in survey() if layer.name == name), None)


def open_layer(name, tmp_path_factory):
    if why_not(name) is not None:
        pytest.skip(f"the sandbox {name} does not work here: {why_not(name)}")
    return Confined(name, tmp_path_factory.mktemp("scratch").resolve())


@pytest.fixture(scope="module", params=LAYERS)
def any_layer(request, tmp_path_factory):
    """Every way to run workers, with and without a sandbox."""
    with contextlib.closing(open_layer(request.param, tmp_path_factory)) as confined:
        yield confined


@pytest.fixture
def sandboxed(any_layer):
    """Every way but the plain one."""
    if any_layer.layer.name == "none":
        pytest.skip("plain processes are not confined")
    return any_layer


def running_with(marker):
    """Return the processes whose command line or environment holds a text, zombies left out."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if marker.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def gone_within(marker, seconds):
    deadline = time.monotonic() + seconds
    while running_with(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not running_with(marker)


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
import sys, threading
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_sandbox import Confined
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
    code = PARENT.format(tests=str(Path(__file__).parent), name=name, root=str(tmp_path), marker=marker)
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


def test_fork_bomb_is_bounded(any_layer):
    marker = f"9{uuid.uuid4().int % 10**8}"
    measurement = any_layer.run(
        f"""
        import os, subprocess
        while True:
            subprocess.Popen(["sh", "-c", "sleep {marker} & sleep {marker}"], start_new_session=True)
        """,
        Limits(stage_seconds=20, timing_seconds=1, compile_seconds=1, memory_bytes=512 * MIB, tasks=40),
    )
    assert measurement.fault == Reason.SIDE_EFFECT
    assert "processes" in measurement.fault_detail
    assert running_with(marker) == []


def test_memory_of_children_counts(any_layer):
    measurement = any_layer.run(
        """
        import subprocess, sys, time
        grow = "import time; kept = bytearray(b'x') * (400 << 20); time.sleep(60)"
        children = [subprocess.Popen([sys.executable, "-c", grow], start_new_session=True) for _ in range(2)]
        time.sleep(60)
        """
    )
    assert measurement.fault == Reason.TOO_MUCH_MEMORY


@pytest.fixture(scope="module")
def confined(tmp_path_factory):
    """The best layer that works here."""
    with contextlib.closing(Confined("auto", tmp_path_factory.mktemp("scratch").resolve())) as best:
        yield best


def test_memory_of_the_worker_is_limited(confined):
    measurement = confined.run("kept = bytearray(b'x') * (800 << 20)\nwhile True: pass")
    assert measurement.fault == Reason.TOO_MUCH_MEMORY


def test_a_file_cannot_grow_beyond_its_limit(confined):
    told = confined.told(
        """
        try:
            open("large", "w").truncate(600 << 20)
        except OSError as error:
            raise RuntimeError(f"refused: {error}")
        raise RuntimeError("written")
        """
    )
    assert told == "refused: [Errno 27] File too large"


def test_files_are_limited_together(confined):
    limits = Limits(
        stage_seconds=20, timing_seconds=1, compile_seconds=1, memory_bytes=512 * MIB, disk_bytes=32 * MIB
    )
    measurement = confined.run(
        """
        for number in range(99):
            open(str(number), "wb").write(bytes(4 << 20))
        while True:
            pass
        """,
        limits,
    )
    assert measurement.fault == Reason.SIDE_EFFECT
    assert "files" in measurement.fault_detail


def test_a_flood_of_output_ends_at_the_largest_file(confined):
    measurement = confined.run("while True:\n    print('x' * (1 << 20))")
    assert measurement.fault in {Reason.INIT_FAILED, Reason.SIDE_EFFECT}
    assert "File too large" in measurement.fault_detail or "files" in measurement.fault_detail


def test_endless_loop_that_ignores_signals_is_a_timeout(confined):
    measurement = confined.run(
        """
        import signal
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass
        """,
        Limits(stage_seconds=1, timing_seconds=1, compile_seconds=1, memory_bytes=512 * MIB),
    )
    assert measurement.fault == Reason.TIMEOUT
    assert measurement.fault_stage == "build"


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


def test_foreign_code_needs_a_sandbox(engine, monkeypatch):
    code = "raise RuntimeError('ran')"
    foreign = Candidate(index=0, name="foreign", code=code)
    ours = Candidate(index=1, name="ours", code=code, origin="rules")
    monkeypatch.setattr(engine, "sandbox", "none")
    with pytest.raises(SandboxFault, match="--unsafe"):
        engine.measure(foreign)
    assert engine.measure(ours).fault_detail.endswith("ran")
    monkeypatch.setattr(engine, "_unsafe", True)
    assert engine.measure(foreign).fault_detail.endswith("ran")


def test_a_layer_that_does_not_work_is_refused_in_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "")
    survey.cache_clear()
    try:
        with pytest.raises(SandboxFault, match="bwrap is not installed"):
            usable("bubblewrap")
    finally:
        survey.cache_clear()


REFUSING = """
from filters.sandbox import layers, seccomp
from filters.sandbox.syscalls import give_up_privileges
give_up_privileges()
seccomp.restrict(signals=False)
print(layers.usable("auto")[0].name, *(layer.why_not for layer in layers.survey()[:2]), sep="\\n")
"""


def test_where_namespaces_are_refused_landlock_is_taken():
    """As in most containers."""
    if why_not("landlock") is not None:
        pytest.skip(f"the sandbox landlock does not work here: {why_not('landlock')}")
    code = REFUSING
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    name, no_bubblewrap, no_namespaces = told.stdout.strip().splitlines()
    assert name == "landlock"
    assert "bwrap" in no_bubblewrap
    assert "Operation not permitted" in no_namespaces


def test_a_layer_in_which_no_worker_answers_is_passed_over(monkeypatch):
    monkeypatch.setattr("filters.sandbox.bubblewrap.command", lambda *_, **__: ["false"])
    monkeypatch.setattr("filters.engine.usable", lambda _: (Layer(name="bubblewrap"), Layer(name="none")))
    with Engine(FilterSettings(device="cpu", workers=1, compile_backend="aot_eager"), Policy()) as engine:
        assert engine.sandbox == "none"
        assert "did not start" in engine.passed_over["bubblewrap"]
