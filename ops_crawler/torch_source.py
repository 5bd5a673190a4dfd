"""Operators of the installed torch: modules of `torch.nn`, functions of the namespaces below."""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
import torch.fft
import torch.linalg
import torch.nn.functional as F
import torch.special
from torch import nn

from ops_crawler.aliases import alias_group
from ops_crawler.inspection import describe
from ops_crawler.operator import Kind, Operator
from ops_crawler.reasons import reason_against

NAMESPACES: dict[str, ModuleType] = {
    "torch": torch,
    "torch.fft": torch.fft,
    "torch.linalg": torch.linalg,
    "torch.nn.functional": F,
    "torch.special": torch.special,
}
"""Where functions are looked for."""


class TorchSource:
    """Yields every public callable that works on tensors; settings and state of torch are none."""

    def operators(self) -> Iterator[Operator]:
        """Yield modules first, then functions; those that no layer is built from have a reason."""
        for name, kind, target in torch_callables():
            group = alias_group(name)
            yield describe(
                name,
                kind,
                target,
                source="torch",
                version=torch.__version__.partition("+")[0],
                alias_group=group,
                set_aside=reason_against(name, target, group),
            )


def torch_callables() -> Iterator[tuple[str, Kind, Callable[..., Any]]]:
    """Yield name, kind and callable of everything that is listed."""
    for name, target in _public(nn):
        if inspect.isclass(target) and issubclass(target, nn.Module):
            yield f"torch.nn.{name}", "module", target
    for prefix, namespace in NAMESPACES.items():
        for name, target in _public(namespace):
            if _is_tensor_function(target, prefix):
                yield f"{prefix}.{name}", "function", target


def _public(namespace: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in dir(namespace):
        if not name.startswith("_"):
            yield name, getattr(namespace, name)


def _is_tensor_function(target: Any, prefix: str) -> bool:
    """Tell tensor functions from the settings, types and helpers that share their namespace.

    Functions bound from C++ belong to no module object (`__self__` is None) or to `torch._C._nn`,
    `torch._C._special` and the like; settings, such as `torch.set_num_threads`, belong to `torch._C`.
    Functions written in Python live in `torch.functional` or `torch.nn.functional`.
    """
    if inspect.isbuiltin(target):
        owner = target.__self__
        if isinstance(owner, ModuleType):
            return owner is not torch._C
        return owner is None and target.__module__ == "torch"
    home = {"torch": "torch.functional", "torch.nn.functional": "torch.nn.functional"}.get(prefix)
    return inspect.isfunction(target) and target.__module__ == home
