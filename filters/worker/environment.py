"""Asks the machine what it is; runs in a worker, because the parent never touches CUDA."""

import dataclasses
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import torch

from filters.environment import Environment


def here(job: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `Environment`, and of each CUDA device in `cards` its name and memory in bytes."""
    cuda = job["device"] == "cuda"
    environment = Environment(
        device_name=torch.cuda.get_device_name() if cuda else _cpu_name(),
        driver_version=_driver_version() if cuda else None,
        cuda_version=torch.version.cuda if cuda else None,
        torch_version=torch.__version__,
        transformers_version=_installed("transformers"),
        tf32_matmul=torch.backends.cuda.matmul.allow_tf32,
        tf32_cudnn=torch.backends.cudnn.allow_tf32,
        compile_backend=job["compile_backend"],
        threads=job["threads"],
    )
    found = map(torch.cuda.get_device_properties, range(torch.cuda.device_count() if cuda else 0))
    cards = [{"name": card.name, "bytes": card.total_memory} for card in found]
    return dataclasses.asdict(environment) | {"cards": cards}


def _cpu_name() -> str:
    """Return `MODEL (N cores)`."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model} ({len(os.sched_getaffinity(0))} cores)"


def _driver_version() -> str | None:
    path = Path("/proc/driver/nvidia/version")
    words = path.read_text().split() if path.exists() else []
    return next((w for w in words if w.count(".") == 2 and w.replace(".", "").isdigit()), None)


def _installed(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
