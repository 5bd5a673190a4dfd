"""One confined worker server for tests, and what is left of its processes."""

import contextlib
import textwrap
import threading
import time
import uuid
from pathlib import Path

import pytest

from filters.card import Card
from filters.compiler_cache import CompilerCache
from filters.conversation import Conversation
from filters.crew import Crew
from filters.limits import Limits
from filters.policy import Policy
from filters.sandbox.layers import survey, usable
from filters.spawner import Spawner

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
LIMITS = Limits(stage_seconds=20, timing_seconds=20, compile_seconds=20, memory_bytes=512 * MIB)


class Confined:
    """One worker server behind one layer."""

    def __init__(self, name, scratch_root, *, compiles=False):
        self.layer = usable(name)[0]
        self._root = scratch_root
        self._spawner = Spawner(0, self.layer, scratch_root, compiles=compiles)
        self._spawner.wait_ready()
        self._card = Card()
        self._crew = Crew(scratch_root, CompilerCache(scratch_root), 3)

    def run(self, code, limits=LIMITS):
        """Run a snippet as the module level of a task; return the measurement."""
        return self.talk(self.job(code), limits)[1]

    def talk(self, job, limits=LIMITS):
        """Run one job; return the process that did it, and the measurement."""
        with self._crew.worker(self._spawner, self._card, stays=job["stays"]) as worker:
            conversation = Conversation(worker, job, limits, threading.Event())
            conversation.hold()
            return worker.child.worker_pid, conversation.measurement()

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
            "stays": False,
            "device": "cpu",
            "threads": 1,
            "card": None,
            "device_bytes": None,
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
        self._crew.close()
        self._spawner.close()


def why_not(name):
    return next((layer.why_not for layer in survey() if layer.name == name), None)


def open_layer(name, tmp_path_factory, *, compiles=False):
    if why_not(name) is not None:
        pytest.skip(f"the sandbox {name} does not work here: {why_not(name)}")
    return Confined(name, tmp_path_factory.mktemp("scratch").resolve(), compiles=compiles)


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
