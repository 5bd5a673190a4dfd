"""What a candidate did to its process besides computing.

Two instruments: a snapshot of process-wide state before and after, and Python's audit events, which a
candidate cannot switch off. The process ends after this candidate, so nothing is restored; the point is
that the task would harm the process of whoever trains on it, or cheat there.
"""

import builtins
import gc
import math
import os
import random
import signal
import sys
import threading
import time
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from filters.worker.trees import bits

_WATCHED_MODULES: tuple[Any, ...] = (
    builtins,
    gc,
    math,
    os,
    random,
    signal,
    sys,
    threading,
    time,
    torch,
    torch.nn,
    torch.nn.functional,
    torch.nn.Module,
    torch.nn.Parameter,
    torch.nn.init,
    torch.Tensor,
    torch.autograd,
    torch.cuda,
    torch.cuda.Event,
    torch.linalg,
    torch.fft,
    torch.special,
    torch.testing,
    torch.utils,
    torch.compiler,
)
_WATCHED_EVENTS = {
    "_thread.start_new_thread": "started a thread",
    "subprocess.Popen": "started a process",
    "os.fork": "started a process",
    "os.forkpty": "started a process",
    "os.exec": "started a process",
    "os.posix_spawn": "started a process",
    "os.system": "started a process",
    "os.kill": "sent a signal",
    "os.putenv": "changed the environment",
    "os.chdir": "changed the working directory",
    "os.remove": "changed files",
    "os.rename": "changed files",
    "os.mkdir": "changed files",
    "socket.__new__": "opened a socket",
    "gc.get_objects": "walked the garbage collector",
    "gc.get_referrers": "walked the garbage collector",
    "urllib.Request": "opened a socket",
}
_IGNORED_NAMES = {"last_exc", "last_type", "last_value", "last_traceback", "__annotations__", "__dict__"}


class Watch:
    """Audit events that occurred while candidate code ran."""

    def __init__(self) -> None:
        self._candidate_runs = False
        self.events: set[str] = set()
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._candidate_runs:
            return
        if event in _WATCHED_EVENTS:
            self.events.add(_WATCHED_EVENTS[event])
        elif event == "open" and isinstance(args[1], str) and any(c in args[1] for c in "wax+"):
            self.events.add("wrote a file")

    @contextmanager
    def candidate(self) -> Iterator[None]:
        """Attribute events to the candidate while this block runs."""
        self._candidate_runs = True
        try:
            yield
        finally:
            self._candidate_runs = False


class Snapshot:
    """Process-wide state at one moment."""

    def __init__(self) -> None:
        self._settings = _settings()
        self._attributes = [
            {name: value for name, value in vars(owner).items() if name not in _IGNORED_NAMES}
            for owner in _WATCHED_MODULES
        ]

    def changes(self) -> tuple[str, ...]:
        """Return what differs now, in words."""
        now = _settings()
        changed = [f"changed {name}" for name, value in self._settings.items() if now[name] != value]
        for owner, before in zip(_WATCHED_MODULES, self._attributes, strict=True):
            current = vars(owner)
            changed += [
                f"replaced {getattr(owner, '__name__', owner)}.{name}"
                for name, value in before.items()
                if current.get(name) is not value and _is_function(value)
            ]
        return tuple(changed)


def _is_function(value: Any) -> bool:
    """Functions and classes are replaced only on purpose; plain values move on their own."""
    return callable(value) or isinstance(value, types.ModuleType | property)


def _settings() -> dict[str, Any]:
    return {
        "the default dtype": torch.get_default_dtype(),
        "the default device": str(torch.get_default_device()),
        "the gradient mode": torch.is_grad_enabled(),
        "the inference mode": torch.is_inference_mode_enabled(),
        "the number of threads": torch.get_num_threads(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
        "the matmul precision": torch.get_float32_matmul_precision(),
        "TF32 of cuDNN": torch.backends.cudnn.allow_tf32,
        "cuDNN benchmarking": torch.backends.cudnn.benchmark,
        "cuDNN": torch.backends.cudnn.enabled,
        "anomaly detection": torch.is_anomaly_enabled(),
        "denormal flushing": torch.tensor(1e-310, dtype=torch.float64).mul(1).item() == 0.0,
        "the environment": dict(os.environ),
        "the working directory": Path.cwd(),
        "files in the working directory": sorted(p.name for p in Path.cwd().iterdir()),
        "signal handlers": [signal.getsignal(n) for n in sorted(signal.valid_signals())],
        "the garbage collector": (gc.isenabled(), gc.get_threshold()),
        "the recursion limit": sys.getrecursionlimit(),
        "tracing": (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()),
        "running threads": threading.active_count(),
        "the standard streams": (sys.stdout, sys.stderr, sys.stdin),
    }


class Canaries:
    """Tensors of ours that look like the candidate's own; nobody else may write to them."""

    def __init__(self, like: list[torch.Tensor], elements_max: int = 1 << 22) -> None:
        self._kept = [torch.ones_like(t) for t in like if 0 < t.numel() <= elements_max]
        self._versions = [t._version for t in self._kept]
        self._bits = [bits(t).clone() for t in self._kept]

    def intact(self) -> bool:
        """True while none was written to."""
        return all(
            tensor._version == version and torch.equal(bits(tensor), before)
            for tensor, version, before in zip(self._kept, self._versions, self._bits, strict=True)
        )
