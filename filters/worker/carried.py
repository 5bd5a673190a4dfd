"""What a forward could carry over to the next one: everything of the candidate's that can hold state.

Walks from the model and the task's module through attributes, containers, the candidate's own objects,
functions (defaults, attributes, closures) and iterators. Objects of libraries are left alone: torch keeps
counters and caches of its own.
"""

import collections
import functools
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from filters.worker import trees

_SIMPLE = (int, float, complex, str, bytes, bytearray, type(None))
_DEPTH_MAX = 40
_NOT_STATE = {"__builtins__", "__cached__", "__file__", "__loader__", "__spec__", "__weakref__"}
_WRAPPERS = {
    property: ("fget", "fset"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    types.MethodType: ("__func__", "__self__"),
    functools.partial: ("func", "args", "keywords"),
    functools.partialmethod: ("func", "args", "keywords"),
    functools.cached_property: ("func",),
}


def state_digest(model: nn.Module, task: types.ModuleType) -> str:
    """Return a digest that changes with any tensor, plain value or order that the candidate can reach."""
    return trees.digest(_Walk(task.__name__).tree_of({"model": model, "task": vars(task)}))


class _Walk:
    """Turns objects into a tree of tensors and of dicts whose keys spell the plain values."""

    def __init__(self, task_name: str) -> None:
        self._task_name = task_name
        self._seen: dict[int, Any] = {}  # holds on to the objects: an id must not be given twice

    def tree_of(self, value: Any, depth: int = 0) -> Any:
        """Return the comparable tree of one value, empty where it was met before."""
        if isinstance(value, _SIMPLE):
            return {f"{type(value).__name__} {value!r}": None}
        if depth > _DEPTH_MAX or id(value) in self._seen:
            return None
        self._seen[id(value)] = value
        parts = {repr(key): self.tree_of(part, depth + 1) for key, part in self._parts(value)}
        return [value.detach(), parts] if isinstance(value, torch.Tensor) else parts

    def _parts(self, value: Any) -> Iterator[tuple[Any, Any]]:
        """Name the parts of a value that can hold state."""
        if isinstance(value, dict):
            yield from ((key, part) for key, part in value.items() if key not in _NOT_STATE)
        elif isinstance(value, list | tuple | collections.deque):
            yield from enumerate(value)
        elif isinstance(value, set | frozenset):
            yield from enumerate(sorted(map(repr, value)))
        elif isinstance(value, torch.Generator):
            yield "state", value.get_state()
        elif isinstance(value, Iterator):
            yield from _place(value)
        elif isinstance(value, types.FunctionType):
            if value.__module__ == self._task_name:
                yield from _of_function(value)
        elif type(value) in _WRAPPERS:
            yield from ((name, getattr(value, name)) for name in _WRAPPERS[type(value)])
        elif isinstance(value, nn.Module | torch.Tensor | types.SimpleNamespace) or self._is_own(value):
            yield from _attributes(value)
            if isinstance(value, torch.Tensor) and value.is_leaf:
                yield "grad", value.grad
            if self._is_own(value) and not isinstance(value, type):
                yield "class", type(value)

    def _is_own(self, value: Any) -> bool:
        cls = value if isinstance(value, type) else type(value)
        return cls.__module__ == self._task_name


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    own = getattr(value, "__dict__", {})
    yield from ((key, part) for key, part in own.items() if key not in _NOT_STATE)
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            yield name, getattr(value, name, None)


def _of_function(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    yield "defaults", function.__defaults__
    yield "keyword defaults", function.__kwdefaults__
    yield "attributes", vars(function)
    for number, cell in enumerate(function.__closure__ or ()):
        try:
            yield f"closure {number}", cell.cell_contents
        except ValueError:  # a name that is not bound yet
            continue


def _place(iterator: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    """Tell how far an iterator has come: from its frame, or as pickle sees it."""
    if isinstance(iterator, types.GeneratorType):
        if iterator.gi_frame is not None:
            yield "at", iterator.gi_frame.f_lasti
            yield "names", dict(iterator.gi_frame.f_locals)
    elif type(iterator).__module__ in ("builtins", "itertools"):
        try:
            yield "place", iterator.__reduce__()[1:]
        except TypeError:  # one that cannot be pickled
            return
