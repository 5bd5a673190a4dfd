"""Seeding and watching the random generators that a task can reach."""

import hashlib
import random

import numpy as np
import torch


def seed_all(seed: int) -> None:
    """Seed Python, NumPy and torch on all devices."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def states(device: torch.device) -> dict[str, str]:
    """Return a digest of each generator's state by name."""
    found = {
        "cpu": torch.get_rng_state().numpy().tobytes(),
        "python": repr(random.getstate()).encode(),
        "numpy": repr(np.random.get_state()).encode(),
    }
    if device.type == "cuda":
        found["cuda"] = torch.cuda.get_rng_state(device).numpy().tobytes()
    return {name: hashlib.sha256(state).hexdigest() for name, state in found.items()}


def advanced(before: dict[str, str], after: dict[str, str]) -> tuple[str, ...]:
    """Return the names of the generators whose state changed."""
    return tuple(name for name, state in before.items() if after[name] != state)
