"""The double-precision run that arbitrates between eager and compiled.

Casts that the task makes are widened as well: a task that computes in bfloat16 inside would otherwise be
its own arbiter, and one that insists on float32 would have none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from filters.worker import trees
from filters.worker.faults import CandidateFault
from filters.worker.subject import Subject

_WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def double_output(subject: Subject) -> list[torch.Tensor] | None:
    """Run eager in double precision; None where the task cannot: missing kernels, fixed dtypes."""
    try:
        with subject.guard("forward_failed", "in double precision"):
            return subject.memory.enough_for(lambda: _forward(subject))
    except CandidateFault:
        return None


def _forward(subject: Subject) -> list[torch.Tensor]:
    model = subject.copy_of_model()._apply(_widened)
    for module in model.modules():
        _widen_attributes(module)
    inputs = [trees.map_tensors(item, _widened) for item in subject.inputs]
    with _wide_default(), _WideCasts():
        return trees.tensors(subject.forward(inputs, model))


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(_WIDE.get(tensor.dtype, tensor.dtype), copy=True)


def _widen_attributes(module: nn.Module) -> None:
    """Widen tensors that are neither parameters nor buffers."""
    for name, value in list(vars(module).items()):
        if trees.is_plain(value):
            setattr(module, name, _widened(value))


@contextmanager
def _wide_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _WideCasts(TorchDispatchMode):
    """Replaces the dtype that a cast, a creation or a sum asks for."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if isinstance(kwargs.get("dtype"), torch.dtype):
            kwargs["dtype"] = _WIDE.get(kwargs["dtype"], kwargs["dtype"])
        return func(*args, **kwargs)
