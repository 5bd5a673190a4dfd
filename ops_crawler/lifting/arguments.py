"""Recorded arguments sorted into what becomes a parameter of the lifted text and what is written into it.

A constructor's configuration becomes one parameter for everything that was read of it. A forward keeps its
tensors; whatever else it was called with is written at the head of its body.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ops_crawler.lifting.lifted import Input
from ops_crawler.lifting.reasons import NotLiftedError
from ops_crawler.lifting.recording import is_plain

_STRUCTURE = ("shape", "grid", "size", "start_index", "seqlens", "lengths", "level")
"""Words in the names of integer tensors that hold sizes, not indices."""
_CONSTANT_MAX = 64
"""Elements of a tensor that is written down."""
_MASKED = -1e4


@dataclass(frozen=True)
class Leaf:
    """One tensor of a call."""

    name: str
    value: Tensor


def bound(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments by parameter, without `self`, extra keywords and defaults. Raises `NotLiftedError`."""
    signature = inspect.signature(function)
    try:
        arguments = dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise NotLiftedError("arguments", str(error)) from None
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL and arguments.pop(name, ()):
            raise NotLiftedError("arguments", "takes any number of arguments")
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            arguments.pop(name, None)
    return arguments


def leaves(name: str, value: Any) -> tuple[list[Leaf], str]:
    """Return the tensors in a value and the expression that puts it together. Raises `NotLiftedError`."""
    if isinstance(value, Tensor):
        if value.is_sparse or type(value) not in (Tensor, torch.nn.Parameter):
            raise NotLiftedError("arguments", f"{name} is a {type(value).__name__}")
        return [Leaf(name, value)], name
    if is_plain(value):
        return [], literal(value)
    if type(value) in (list, tuple):
        parts = [leaves(f"{name}_{number}", one) for number, one in enumerate(value)]
        inside = ", ".join(expression for _, expression in parts)
        text = f"[{inside}]" if type(value) is list else f"({inside},)"
        return [leaf for found, _ in parts for leaf in found], text
    if type(value) is dict and all(isinstance(key, str) and key.isidentifier() for key in value):
        parts = [leaves(f"{name}_{key}", one) for key, one in value.items()]
        inside = ", ".join(f"{key!r}: {part[1]}" for key, part in zip(value, parts, strict=True))
        return [leaf for found, _ in parts for leaf in found], f"{{{inside}}}"
    if "Cache" in type(value).__name__:
        return [], "None"
    raise NotLiftedError("arguments", f"{name} is a {type(value).__name__}")


def literal(value: Any) -> str:
    """Return a plain value as Python text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {literal(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(literal, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"float({str(value)!r})"
    if isinstance(value, bool | type(None) | torch.dtype):
        return str(value)
    for kind in (int, float, str):
        if isinstance(value, kind):
            return repr(kind(value))
    raise NotLiftedError("arguments", f"a {type(value).__name__}")


def inputs_of(smaller: Sequence[Leaf], larger: Sequence[Leaf]) -> list[Input]:
    """Return the inputs of a call, seen at batches of two and of three. Raises `NotLiftedError`."""
    if [leaf.name for leaf in smaller] != [leaf.name for leaf in larger]:
        raise NotLiftedError("arguments", "differ with the batch")
    return [_input(one, other) for one, other in zip(smaller, larger, strict=True)]


def resized(inputs: Sequence[Input], full: Sequence[Leaf]) -> list[Input]:
    """Return the same inputs with the shapes of a full-width run at a batch of two."""
    if [one.name for one in inputs] != [leaf.name for leaf in full]:
        raise NotLiftedError("arguments", "differ with the width")
    changed = []
    for one, leaf in zip(inputs, full, strict=True):
        shape = list(leaf.value.shape)
        if len(shape) != len(one.shape) or (one.kind == "constant" and tuple(shape) != one.shape):
            raise NotLiftedError("arguments", "differ with the width")
        for axis in one.batch_axes:
            shape[axis], odd = divmod(shape[axis], 2)
            if odd:
                raise NotLiftedError("arguments", "differ with the width")
        changed.append(
            Input(
                name=one.name, kind=one.kind, dtype=one.dtype, shape=tuple(shape), batch_axes=one.batch_axes,
                high=one.high, values=one.values,
            )
        )  # fmt: skip
    return changed


def _input(one: Leaf, other: Leaf) -> Input:
    shape, axes = list(one.value.shape), []
    if len(shape) != other.value.dim():
        raise NotLiftedError("arguments", f"the rank of {one.name} differs with the batch")
    for axis, (two, three) in enumerate(zip(one.value.shape, other.value.shape, strict=True)):
        if two == three:
            continue
        if two * 3 != three * 2:
            raise NotLiftedError("arguments", f"the shape of {one.name} differs with the batch")
        shape[axis] = two // 2
        axes.append(axis)
    kind, high, values = _kind(one)
    if kind == "constant" and axes == [0] and bool((one.value == one.value[:1]).all()):
        kind, values = "rows", literal(one.value[: shape[0]].tolist())
        return Input(
            name=one.name, kind=kind, dtype=str(one.value.dtype).removeprefix("torch."), shape=tuple(shape),
            batch_axes=(0,), values=values,
        )  # fmt: skip
    return Input(
        name=one.name,
        kind=kind,
        dtype=str(one.value.dtype).removeprefix("torch."),
        shape=tuple(shape) if kind != "constant" else tuple(one.value.shape),
        batch_axes=tuple(axes) if kind != "constant" else (),
        high=high,
        values=values,
    )


def _kind(leaf: Leaf) -> tuple[str, int, str]:
    value, name = leaf.value, leaf.name
    if value.dtype == torch.bool:
        return "bool", 0, ""
    if not value.dtype.is_floating_point:
        if value.dtype.is_complex or value.numel() == 0:
            raise NotLiftedError("arguments", f"{name} is of type {value.dtype}")
        if any(word in name for word in _STRUCTURE) or int(value.min()) < 0:
            if value.numel() > _CONSTANT_MAX:
                raise NotLiftedError("arguments", f"{name} holds sizes")
            return "constant", 0, literal(value.tolist())
        return "int", int(value.max()) + 1, ""
    least, most = (float(value.min()), float(value.max())) if value.numel() else (0.0, 0.0)
    if least <= _MASKED and bool(((value == 0) | (value <= _MASKED)).all()):
        return "mask", 0, ""
    if "mask" in name and least == 0 and most == 0:
        return "mask", 0, ""
    if least >= 0 and most <= 1:
        return "unit", 0, ""
    if least >= -1 and most <= 1 and ("cos" in name or "sin" in name or "position_emb" in name):
        return "signed", 0, ""
    return "normal", 0, ""
