"""Which of torch's public names stand for the same operator, and which of them is the canonical one.

torch says so in docstrings ("Alias for ..."), or binds one name to another's callable. Where `torch` and
`torch.special` both have an operator, the name in `torch` is canonical; where `torch` has it without
documentation or as the very same callable, the one in `torch.nn.functional` is. The filters name what ran
in the same way, so that an operator asked for is found again.
"""

import re
from functools import cache, lru_cache
from typing import Any

import torch
import torch.nn.functional as F

_DOCUMENTED = re.compile(r"^\s*Alias (?:for|of) :func:`~?(torch\.[\w.]+)`", re.M)
_UNDOCUMENTED = {"torch.special.gammaln": "torch.lgamma"}
"""Same operator, though no docstring says so."""


@lru_cache(maxsize=4096)
def alias_group(path: str) -> str:
    """Return the canonical name of the operator that torch offers as `path`; in-place forms are in it too."""
    namespace, _, name = path.rpartition(".")
    if namespace == "torch.nn":
        return path
    if name.endswith("_") and _member(namespace, name[:-1]) is not None:
        return alias_group(path[:-1])
    if path in _UNDOCUMENTED:
        return _UNDOCUMENTED[path]
    target = _documented_alias(_member(namespace, name))
    if target and not target.startswith(("torch.special.", "torch.nn.functional.")):
        return alias_group(target)
    if namespace == "torch.special":
        return _of_special(target or path)
    if namespace in ("torch", "torch.nn.functional"):
        return _of_torch_or_functional(name, path)
    return path


def _of_torch_or_functional(name: str, path: str) -> str:
    own, functional = getattr(torch, name, None), getattr(F, name, None)
    if callable(own) and own.__doc__ and own is not functional:
        return f"torch.{name}"
    return f"torch.nn.functional.{name}" if callable(functional) else path


def _of_special(path: str) -> str:
    name = path.rpartition(".")[2]
    if path in _called_special():
        return _called_special()[path]
    if callable(getattr(torch, name, None)) or callable(getattr(F, name, None)):
        return _of_torch_or_functional(name, path)
    return path


@cache
def _called_special() -> dict[str, str]:
    """Return names in `torch.special` by which a function of `torch` is known, with that function's name."""
    found = {}
    for name in dir(torch):
        target = _documented_alias(getattr(torch, name))
        if target and target.startswith("torch.special."):
            found[target] = f"torch.{name}"
    return found


def _documented_alias(target: Any) -> str | None:
    text = target.__doc__ if callable(target) and isinstance(target.__doc__, str) else ""
    found = _DOCUMENTED.search(text)
    return found.group(1) if found else None


def _member(namespace: str, name: str) -> Any:
    found: Any = torch
    for part in [*namespace.split(".")[1:], name]:
        found = getattr(found, part, None)
    return found
