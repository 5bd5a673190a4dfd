"""What a candidate did to its process besides computing.

Two instruments: a snapshot of process-wide state before and after, and Python's audit events, which a
candidate cannot switch off. The process ends after this candidate, so nothing is restored; the point is
that the task would harm the process of whoever trains on it, or cheat there.
"""

import _thread
import atexit
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
import warnings
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
_WATCHED_CLASSES = tuple(getattr(torch.nn, name) for name in torch.nn.modules.__all__)
_OWN_PACKAGE = "filters."
_WATCHED_EVENTS = {
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
    "sys.addaudithook": "installed an audit hook",
}
_GLOBAL_HOOKS = [
    hooks
    for name, hooks in vars(torch.nn.modules.module).items()
    if name.startswith("_global_") and isinstance(hooks, dict)
]
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_IGNORED_NAMES = frozenset(
    """last_exc last_type last_value last_traceback __annotations__ __dict__ __slotnames__
    __warningregistry__""".split()
)


class Watch:
    """What candidate code did while it ran, from audit events and from started threads."""

    def __init__(self) -> None:
        self._candidate_runs = False
        self.events: set[str] = set()
        sys.addaudithook(self._hook)
        self._watch_threads()

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if not self._candidate_runs or _without_effect(event, args):
            return
        if event in _WATCHED_EVENTS:
            self.events.add(_WATCHED_EVENTS[event])
        elif event == "open" and args[2] & _WRITING:
            self.events.add("wrote a file")

    def _watch_threads(self) -> None:
        """Note started threads by a wrapper: Python 3.11 has no audit event for them."""
        start = _thread.start_new_thread

        def noted(*args: Any) -> int:
            if self._candidate_runs:
                self.events.add("started a thread")
            return start(*args)

        _thread.start_new_thread = noted
        vars(threading)["_start_new_thread"] = noted

    @contextmanager
    def candidate(self) -> Iterator[None]:
        """Attribute events to the candidate while this block runs."""
        self._candidate_runs = True
        try:
            yield
        finally:
            self._candidate_runs = False


def _without_effect(event: str, args: tuple[Any, ...]) -> bool:
    """True for what torch's compiler does when an operator calls it: say again where its cache is."""
    if event == "os.putenv":
        return os.environb.get(args[0]) == args[1]
    return event == "os.mkdir" and Path(os.fsdecode(args[0])).exists()


class Snapshot:
    """Process-wide state at one moment."""

    def __init__(self) -> None:
        self._folders = [Path.cwd(), Path(os.environ.get("TMPDIR", "."))]
        self._settings = self._current_settings()
        self._attributes = [(owner, _attributes(owner)) for owner in _watched()]

    def changes(self) -> tuple[str, ...]:
        """Return what differs now, in words."""
        now = self._current_settings()
        changed = [f"changed {name}" for name, value in self._settings.items() if now[name] != value]
        for owner, before in self._attributes:
            current = _attributes(owner)
            name = getattr(owner, "__name__", str(owner))
            replaced = [a for a, value in before.items() if _replaced(owner, value, current.get(a))]
            added = [a for a in current.keys() - before.keys() if _added(current[a])]
            changed += [f"replaced {name}.{a}" for a in replaced] + [f"added {name}.{a}" for a in added]
        return tuple(changed)

    def _current_settings(self) -> dict[str, Any]:
        return _settings() | {
            "files in the working directory": [_listing(folder) for folder in self._folders],
        }


def _watched() -> list[Any]:
    """Return modules and classes that candidates have no business to change; ours among them."""
    own = [module for name, module in sys.modules.items() if name.startswith(_OWN_PACKAGE)]
    return [*_WATCHED_MODULES, *_WATCHED_CLASSES, *own]


def _attributes(owner: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(owner).items() if name not in _IGNORED_NAMES}


def _replaced(owner: Any, before: Any, now: Any) -> bool:
    """Functions and classes are replaced only on purpose; torch's plain values move on their own."""
    if now is before:
        return False
    if callable(before) or isinstance(before, types.ModuleType | property):
        return True
    constant = isinstance(before, int | float | str)
    return constant and (owner is math or owner.__name__.startswith(_OWN_PACKAGE))


def _added(value: Any) -> bool:
    """Submodules appear when somebody imports them."""
    return not isinstance(value, types.ModuleType)


def _listing(folder: Path) -> list[str] | None:
    """Return the visible names in a folder; libraries keep their caches in hidden ones."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:
        return None


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
        "cuDNN": (torch.backends.cudnn.enabled, torch.backends.cudnn.deterministic),
        "anomaly detection": torch.is_anomaly_enabled(),
        "denormal flushing": torch.tensor(1e-310, dtype=torch.float64).mul(1).item() == 0.0,
        "automatic mixed precision": [torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")],
        "attention kernels": (
            torch.backends.cuda.flash_sdp_enabled(),
            torch.backends.cuda.mem_efficient_sdp_enabled(),
            torch.backends.cuda.math_sdp_enabled(),
        ),
        "hooks of all modules": [len(hooks) for hooks in _GLOBAL_HOOKS],
        "function modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "kernels of aten": sum(
            key.startswith("aten/") and "FuncTorch" not in key for key in torch.library._impls
        ),
        "the environment": dict(os.environ),
        "the search path": list(sys.path),
        "imported modules": [sys.modules.get(m.__name__) is m for m in _WATCHED_MODULES if _is_module(m)],
        "filters of warnings": list(warnings.filters),
        "signal handlers": [signal.getsignal(n) for n in sorted(signal.valid_signals())],
        "the garbage collector": (gc.isenabled(), gc.get_threshold()),
        "the recursion limit": sys.getrecursionlimit(),
        "exit handlers": atexit._ncallbacks(),
        "processor affinity": os.sched_getaffinity(0),
        "tracing": (sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()),
        "running threads": threading.active_count(),
        "the standard streams": (sys.stdout, sys.stderr, sys.stdin),
    }


def _is_module(owner: Any) -> bool:
    return isinstance(owner, types.ModuleType)


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
