"""What the abstract interpreter knows of a value: a tensor, a layer, a list of layers, or hardly anything."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Tensor:
    """Some tensor."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """No tensor as far as can be seen: a size, a configuration, the result of unknown code."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A known number, string, bool or None."""

    value: Any


@dataclass(frozen=True, slots=True)
class Library:
    """Something of a library by its dotted path; `builtins.x` for builtins and unknown names."""

    path: str


@dataclass(eq=False, slots=True)
class Layer:
    """An instance of a torch.nn module; each is a layer of its own."""

    path: str


@dataclass(eq=False, slots=True)
class Items:
    """A list, tuple, `ModuleList` or the values of a dict. Grows by `append`."""

    values: list["Value"]
    keys: list[Any] = field(default_factory=list)
    """Keys of the values where it stands for a dict."""
    is_chain: bool = False
    """Whether it is an `nn.Sequential`: calling it calls one after the other."""


@dataclass(eq=False, slots=True)
class Instance:
    """An object of a class of the code."""

    cls: ast.ClassDef
    attributes: dict[str, "Value"] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Function:
    """A function, lambda or class of the code, with the variables around it and what it is bound to."""

    node: ast.AST
    variables: dict[str, "Value"]
    bound_to: Instance | None = None


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a tensor, a layer, a list or an unknown value, before it is called."""

    owner: "Value"
    name: str


@dataclass(frozen=True, slots=True)
class Parent:
    """`super()` inside a method: the object and the class whose bases are looked at."""

    instance: Instance
    cls: ast.ClassDef


Value = Tensor | Unknown | Constant | Library | Layer | Items | Instance | Function | Method | Parent

TENSOR = Tensor()
UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a library: its dotted path, for a layer the layer, and what was passed."""

    path: str
    layer: Layer | None = None
    arguments: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)


def has_tensor(values: Sequence[Value]) -> bool:
    """Whether a tensor is among the values, also inside lists."""
    waiting = list(values)
    seen: set[int] = set()
    while waiting:
        value = waiting.pop()
        if value == TENSOR:
            return True
        if isinstance(value, Items) and id(value) not in seen:
            seen.add(id(value))
            waiting += value.values
    return False


def one_of(values: Sequence[Value]) -> Value:
    """Return what can be said of a value that is one of several."""
    if not values or all(value == values[0] for value in values):
        return values[0] if values else UNKNOWN
    if has_tensor([value for value in values if not isinstance(value, Items)]):
        return TENSOR
    return next((value for value in values if not isinstance(value, Unknown | Constant)), UNKNOWN)
