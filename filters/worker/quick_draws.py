"""Inputs as a user of the row makes them, on the CPU and then moved, without the CPU's slowness.

A GPU draws 10^8 normals in 3 ms; a CPU needs 0.8 s in float32, and in bfloat16 ten times that. Moving 4 GiB
takes more than a second each way.
"""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_CREATING = {torch.randn, torch.rand, torch.randint, torch.randn_like, torch.rand_like, torch.randint_like}
_FILLING = {
    getattr(torch.Tensor, name)
    for name in ("normal_", "uniform_", "random_", "exponential_", "bernoulli_", "log_normal_", "cauchy_")
}
_ALIKE = {
    *(torch.randn, torch.rand, torch.randint, torch.randperm, torch.zeros, torch.ones, torch.sign),
    *(getattr(torch.Tensor, name) for name in ("add", "sub", "mul", "div", "neg", "abs", "lt", "gt")),
}
_LEFT_ALONE = {"device", "generator", "out", "requires_grad", "layout", "pin_memory"}


class DrawnOn(TorchFunctionMode):
    """Draws on the given device what would be drawn on the CPU; leaves calls with unusual keywords alone."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _LEFT_ALONE.isdisjoint(kwargs):
            if func in _CREATING:
                return func(*args, **kwargs, device=self._device).cpu()
            if func in _FILLING and args[0].device.type == "cpu" and not args[0].requires_grad:
                drawn = func(torch.empty_like(args[0], device=self._device), *args[1:], **kwargs)
                return args[0].copy_(drawn)
        return func(*args, **kwargs)


class OnlyDraws(TorchFunctionMode):
    """Notes whether all that is called creates the same kind of tensor on every device."""

    def __init__(self) -> None:
        super().__init__()
        self.alike = True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in _ALIKE or not _LEFT_ALONE.isdisjoint(kwargs):
            self.alike = False
        return func(*args, **kwargs)
