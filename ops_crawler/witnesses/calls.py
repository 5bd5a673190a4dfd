"""Write a call down as JSON, and make its arguments again from that.

| in JSON | stands for |
|---|---|
| numbers, texts, true, false, null | themselves |
| `{"tensor": [2, 3], "dtype": "float32", "range": [-1, 1]}` | any tensor with entries in that range |
| `{"tensor": [2], "dtype": "int64", "values": [0, 3]}` | that very tensor; complex entries are pairs |
| `{"list": [...]}`, `{"tuple": [...]}` | sequences |
| `{"dtype": "int64"}`, `{"float": "inf"}` | what JSON has no form for |

A call is `{"args": [...], "kwargs": {...}}`, with the constructor's under `"init"` where it is a module's.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

VALUES_MAX = 256
"""Entries of the largest tensor that is written down entry by entry."""


class Indescribable(ValueError):
    """An argument has no place in JSON: a callable, a generator, a sparse tensor. The call is not used."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Positional and keyword arguments."""

    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a function, or of a module built with `init`."""

    forward: Arguments
    init: Arguments | None = None


def written(call: Call, *, values: bool) -> str:
    """Return the call as JSON, tensors with all entries or by range. Raises `Indescribable`."""
    text = _written_arguments(call.forward, values)
    if call.init is not None:
        text["init"] = _written_arguments(call.init, values)
    return json.dumps(text, sort_keys=True, separators=(",", ":"))


def made(text: str, seed: int = 0) -> Call:
    """Return the call that a text describes; tensors known by range are drawn with `seed`."""
    call = json.loads(text)
    generator = torch.Generator().manual_seed(seed)
    init = _made_arguments(call["init"], generator) if "init" in call else None
    return Call(_made_arguments(call, generator), init)


def _written_arguments(arguments: Arguments, values: bool) -> dict[str, Any]:
    return {
        "args": [_written(value, values) for value in arguments.args],
        "kwargs": {name: _written(value, values) for name, value in arguments.kwargs.items()},
    }


def _made_arguments(text: Mapping[str, Any], generator: torch.Generator) -> Arguments:
    kwargs = {name: _made(value, generator) for name, value in text["kwargs"].items()}
    return Arguments(tuple(_made(value, generator) for value in text["args"]), kwargs)


def _written(value: Any, values: bool) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": repr(value)}
        case Tensor():
            return _written_tensor(value, values)
        case torch.dtype():
            return {"dtype": str(value).removeprefix("torch.")}
        case list() | tuple():
            kind = "list" if isinstance(value, list) else "tuple"
            return {kind: [_written(one, values) for one in value]}
    raise Indescribable(type(value).__name__)


def _written_tensor(tensor: Tensor, values: bool) -> dict[str, Any]:
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
        raise Indescribable("a tensor that is not dense on the CPU")
    text: dict[str, Any] = {
        "tensor": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
    }
    entries = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
    if not tensor.is_floating_point() and not tensor.is_complex():
        entries = entries.to(torch.int64)
    if values:
        if entries.numel() > VALUES_MAX:
            raise Indescribable(f"{entries.numel()} entries")
        text["values"] = _rounded(entries.flatten().tolist(), digits=6)
    elif entries.numel():
        low, high = float(entries.min()), float(entries.max())
        text["range"] = _range(low, high) if entries.is_floating_point() else [int(low), int(high)]
    return text


def _range(low: float, high: float) -> list[Any]:
    """Round inwards to two decimals, so that the range stays within the operator's domain."""
    if not math.isfinite(low) or not math.isfinite(high):
        raise Indescribable("entries that are not finite")
    inner = [math.ceil(low * 100) / 100, math.floor(high * 100) / 100]
    return inner if inner[0] <= inner[1] else _rounded([low, high], digits=6)


def _rounded(entries: list[Any], digits: int) -> list[Any]:
    if any(isinstance(entry, float) and not math.isfinite(entry) for entry in entries):
        raise Indescribable("entries that are not finite")
    return [float(f"{e:.{digits}g}") if isinstance(e, float) else e for e in entries]


def _made(value: Any, generator: torch.Generator) -> Any:
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return _made_tensor(value, generator)
    if "dtype" in value:
        return getattr(torch, value["dtype"])
    if "float" in value:
        return float(value["float"])
    (kind,) = value
    members = [_made(one, generator) for one in value[kind]]
    return members if kind == "list" else tuple(members)


def _made_tensor(text: Mapping[str, Any], generator: torch.Generator) -> Tensor:
    shape, dtype = text["tensor"], getattr(torch, text["dtype"])
    stored = [*shape, 2] if dtype.is_complex else shape
    if "values" in text:
        entries = torch.tensor(text["values"], dtype=dtype.to_real()).reshape(stored)
    elif "range" not in text:
        entries = torch.empty(stored, dtype=dtype.to_real())
    elif dtype.is_floating_point or dtype.is_complex:
        low, high = text["range"]
        unit = torch.rand(stored, generator=generator, dtype=torch.float64)
        entries = (low + unit * (high - low)).to(dtype.to_real())
    else:
        low, high = text["range"]
        entries = torch.randint(low, high + 1, stored, generator=generator).to(dtype)
    return torch.view_as_complex(entries.contiguous()) if dtype.is_complex else entries
