"""Operators of the installed torch: modules of `torch.nn`, functions of `torch` and `torch.nn.functional`."""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ops_crawler.inspection import describe
from ops_crawler.operator import Kind, Operator


class TorchSource:
    """Yields every public callable that works on tensors; settings and state of torch are none."""

    def operators(self) -> Iterator[Operator]:
        """Yield modules first, then functions."""
        for name, target in _public(nn):
            if inspect.isclass(target) and issubclass(target, nn.Module):
                yield _described(f"torch.nn.{name}", "module", target)
        for namespace, prefix in ((torch, "torch"), (F, "torch.nn.functional")):
            for name, target in _public(namespace):
                if _is_tensor_function(target, namespace):
                    yield _described(f"{prefix}.{name}", "function", target)


def _described(name: str, kind: Kind, target: Callable[..., Any]) -> Operator:
    return describe(name, kind, target, source="torch", version=torch.__version__)


def _public(namespace: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in dir(namespace):
        if not name.startswith("_"):
            yield name, getattr(namespace, name)


def _is_tensor_function(target: Any, namespace: ModuleType) -> bool:
    """Tell tensor functions from the settings, types and helpers that share their namespace.

    Functions bound from C++ belong to no module object (`__self__` is None) or to `torch._C._nn`;
    settings, such as `torch.set_num_threads`, belong to `torch._C`. Functions written in Python live
    in `torch.functional` or `torch.nn.functional`.
    """
    if inspect.isbuiltin(target):
        owner = target.__self__
        return owner is torch._C._nn or (owner is None and target.__module__ == "torch")
    home = {torch: "torch.functional", F: "torch.nn.functional"}[namespace]
    return inspect.isfunction(target) and target.__module__ == home
