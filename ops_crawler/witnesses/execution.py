"""Make a call and write down what happened."""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ops_crawler.operator import Kind, Origin, Witness
from ops_crawler.witnesses.calls import Call, Indescribable, made, written

_REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AssertionError, KeyError,
             AttributeError, OverflowError, ZeroDivisionError, Warning)  # fmt: skip
"""What torch raises for arguments that do not fit."""


def first_witness(
    kind: Kind, target: Callable[..., Any], calls: Iterable[Call], origin: Origin
) -> Witness | None:
    """Return the witness of the first call that says most: a usual one, with gradients if any call has."""
    best: Witness | None = None
    for call in calls:
        witness = witness_of(kind, target, call, origin)
        if witness is None:
            continue
        if best is None or _says(witness) > _says(best):
            best = witness
        if all(_says(best)):
            break
    return best


def witness_of(kind: Kind, target: Callable[..., Any], call: Call, origin: Origin) -> Witness | None:
    """Return what the call does, or None. It is made from its description, by range if that suffices."""
    for values in (False, True):
        try:
            text = written(call, values=values)
        except Indescribable:
            continue
        witness = witnessed(kind, target, text, origin)
        if witness is not None:
            return witness
    return None


def witnessed(kind: Kind, target: Callable[..., Any], text: str, origin: Origin) -> Witness | None:
    """Execute a described call; None where it raises, is deprecated or returns no tensor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=".*deprecated")
        try:
            inputs, outputs, aten_ops = _observed(kind, target, text)
            differentiable = _is_differentiable(kind, target, text)
        except _REFUSALS:
            return None
    if not outputs:
        return None
    return Witness(
        call=text,
        input_shapes=tuple(tuple(tensor.shape) for tensor in inputs),
        input_dtypes=tuple(_name(tensor.dtype) for tensor in inputs),
        output_shapes=tuple(tuple(tensor.shape) for tensor in outputs),
        output_dtypes=tuple(_name(tensor.dtype) for tensor in outputs),
        aten_ops=aten_ops,
        differentiable=differentiable,
        origin=origin,
    )


def _observed(
    kind: Kind, target: Callable[..., Any], text: str
) -> tuple[list[Tensor], list[Tensor], tuple[str, ...]]:
    """Call without gradients, modules in eval mode, as tasks are run."""
    call = made(text)
    callee = _callee(kind, target, call)
    inputs = _tensors((call.forward.args, call.forward.kwargs))
    with torch.no_grad(), _Names() as trace:
        result = callee(*call.forward.args, **call.forward.kwargs)
    return inputs, _tensors(result), tuple(sorted(trace.names))


def _is_differentiable(kind: Kind, target: Callable[..., Any], text: str) -> bool:
    """Whether a gradient arrives at any input or parameter. Some inputs, such as targets, refuse one."""
    return _has_gradient(kind, target, text, most=None) or _has_gradient(kind, target, text, most=1)


def _has_gradient(kind: Kind, target: Callable[..., Any], text: str, most: int | None) -> bool:
    call = made(text)
    callee = _callee(kind, target, call)
    inputs = _tensors((call.forward.args, call.forward.kwargs))
    leaves = [tensor for tensor in inputs if _is_continuous(tensor)][:most]
    for leaf in leaves:
        leaf.requires_grad_()
    if isinstance(callee, nn.Module):
        leaves += list(callee.parameters())
    try:
        outputs = _tensors(callee(*call.forward.args, **call.forward.kwargs))
        reached = [out.abs().sum() for out in outputs if out.requires_grad and _is_continuous(out)]
        gradients = torch.autograd.grad(reached, leaves, allow_unused=True) if reached else ()
    except _REFUSALS:
        return False
    return any(gradient is not None for gradient in gradients)


def _callee(kind: Kind, target: Callable[..., Any], call: Call) -> Callable[..., Any]:
    torch.manual_seed(0)
    if kind == "function":
        return target
    assert call.init is not None
    module: nn.Module = target(*call.init.args, **call.init.kwargs)
    return module.eval()


def _says(witness: Witness) -> tuple[bool, bool]:
    """Tell a usual call from an edge case, such as an empty tensor or one single number."""
    shapes = [*witness.input_shapes, *witness.output_shapes]
    usual = all(0 not in shape for shape in shapes) and any(len(shape) >= 2 for shape in shapes)
    return usual, witness.differentiable


class _Names(TorchDispatchMode):
    """Collects the names of the aten operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.names.add(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor)]


def _is_continuous(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
