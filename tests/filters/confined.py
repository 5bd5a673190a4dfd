"""One confined worker server for tests, and what is left of its processes."""

import contextlib
import textwrap
import threading
import time
import uuid
from pathlib import Path

import pytest

from filters.conversation import Conversation
from filters.exclusive import Exclusive
from filters.limits import Limits
from filters.policy import Policy
from filters.sandbox.layers import survey, usable
from filters.spawner import Spawner

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
LIMITS = Limits(stage_seconds=20, timing_seconds=20, compile_seconds=20, memory_bytes=512 * MIB)


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
