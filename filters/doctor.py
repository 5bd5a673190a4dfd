"""What works on this machine, found out by trying it. Prints nothing; `opweaver doctor` does."""

import importlib.metadata
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from filters.engine import Engine
from filters.errors import SandboxFault
from filters.policy import Policy
from filters.sandbox.layers import LAYERS, survey
from filters.settings import FilterSettings

_GIB = 1 << 30


class Check(NamedTuple):
    """One line of the report."""

    name: str
    ok: bool
    detail: str
    """What was found or, if not ok, what to do."""


def report(settings: FilterSettings) -> list[Check]:
    """Try everything that measuring needs; takes about a minute, because workers start and compile."""
    return [_torch(), _machine(), *_workers(settings)]


def _torch() -> Check:
    version = _version("torch")
    return Check("torch", version is not None, version or "not installed; `make dataset` sets up .venv")


def _machine() -> Check:
    cores = len(os.sched_getaffinity(0))
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = int(lines["MemAvailable"].split()[0]) * 1024 / _GIB
    return Check("machine", True, f"{cores} cores, {free:.1f} GiB of main memory free")


def _workers(settings: FilterSettings) -> list[Check]:
    """Start workers as for measuring; if that fails, without the compiler, to tell what is to blame."""
    try:
        with Engine(settings, Policy()) as engine:
            compiles = Check("torch.compile", True, "compiles and runs a small layer in a worker")
            return [*_found(engine), compiles]
    except SandboxFault as fault:
        message = str(fault)
    try:
        with Engine(settings.model_copy(update={"compile_backend": "aot_eager"}), Policy()) as engine:
            return [*_found(engine), Check("torch.compile", False, message)]
    except SandboxFault as fault:
        return [Check("workers", False, str(fault))]


def _found(engine: Engine) -> list[Check]:
    environment = engine.environment
    driver = f", driver {environment.driver_version}" if environment.driver_version else ""
    device = Check("device", True, f"{engine.device}: {environment.device_name}{driver}")
    return [_sandbox(engine), device, _compiler(engine.device)]


def _sandbox(engine: Engine) -> Check:
    """Name the layer that is taken and why no stronger one is."""
    layer = next(layer for layer in survey() if layer.name == engine.sandbox)
    stronger = survey()[: LAYERS.index(engine.sandbox)]
    reasons = {other.name: other.why_not for other in stronger if other.why_not is not None}
    reasons |= engine.passed_over
    detail = "; ".join([layer.describe(), *(f"no {name}: {why_not}" for name, why_not in reasons.items())])
    if layer.name == "none":
        return Check("sandbox", False, f"{detail}. Install bubblewrap, or allow foreign code with --unsafe.")
    return Check("sandbox", True, detail)


def _compiler(device: str) -> Check:
    """What inductor needs: a C++ compiler on a CPU, Triton and a C compiler with a GPU."""
    words = {"cpu": os.environ.get("CXX", "g++"), "cuda": os.environ.get("CC", "gcc")}[device]
    path = shutil.which(words.split()[0])
    if path is None:
        return Check("compiler", False, f"{words} is not installed")
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    detail = answer.stdout.splitlines()[0] if answer.stdout else path
    if device == "cpu":
        return Check("compiler", True, detail)
    triton = _version("triton") or _version("pytorch-triton")
    return Check("compiler", triton is not None, f"Triton {triton or 'is not installed'}; {detail}")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
