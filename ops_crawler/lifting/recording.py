"""What a class of the library is constructed from and called with, and what it reads of its configuration.

Runs only in the process of the originals.
"""

import contextlib
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

PLAIN = (bool, int, float, str, type(None), torch.dtype)


@dataclass
class Occurrence:
    """The first module of one class in a model that was run."""

    made_with: tuple[tuple[Any, ...], dict[str, Any]]
    called_with: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    """Arguments of its first call in each run, tensors copied."""


class ConfigView:
    """A configuration as a class sees it: notes what is read."""

    def __init__(self, config: Any, path: str, reads: dict[str, Any]) -> None:
        object.__setattr__(self, "_seen", (config, path, reads))

    def __getattr__(self, name: str) -> Any:
        config, path, reads = object.__getattribute__(self, "_seen")
        value = getattr(config, name)
        if name.startswith("_") or inspect.ismethod(value):
            return value
        if hasattr(value, "to_dict"):
            return ConfigView(value, f"{path}.{name}", reads)
        reads[f"{path}.{name}"] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError(f"writes {name} into its configuration")


@contextlib.contextmanager
def occurrences(classes: Sequence[type[nn.Module]]) -> Iterator[dict[str, Occurrence]]:
    """Yield what will be known of these classes, by name; constructors are watched inside."""
    made: dict[int, tuple[Any, Any]] = {}
    found = _Found(made)
    saved = [(cls, cls.__init__) for cls in classes]
    for cls, construct in saved:
        cls.__init__ = _watched(cls, construct, made)  # type: ignore[method-assign]
    try:
        yield found
    finally:
        for cls, construct in saved:
            cls.__init__ = construct  # type: ignore[method-assign]


class _Found(dict[str, Occurrence]):
    """By class name; `made` maps modules to their arguments and keeps them alive."""

    def __init__(self, made: dict[int, tuple[Any, Any]]) -> None:
        super().__init__()
        self.made = made


def _watched(cls: type, construct: Any, made: dict[int, tuple[Any, Any]]) -> Any:
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        if type(self) is cls:
            made[id(self)] = (self, (args, kwargs))
        construct(self, *args, **kwargs)

    return wrapper


def run(model: nn.Module, inputs: dict[str, Any], found: Any, number: int) -> None:
    """Call a model and note the first call of each watched class as its run `number`."""
    hooks = []
    first: dict[str, nn.Module] = {}

    def note(module: nn.Module, args: Any, kwargs: Any) -> None:
        name = type(module).__name__
        if first.setdefault(name, module) is not module:
            return
        one = found.setdefault(name, Occurrence(found.made[id(module)][1]))
        if len(one.called_with) == number:
            one.called_with.append((copied(args), copied(kwargs)))

    for module in model.modules():
        if id(module) in found.made and found.made[id(module)][0] is module:
            hooks.append(module.register_forward_pre_hook(note, with_kwargs=True))
    try:
        with torch.no_grad():
            model(**inputs)
    finally:
        for hook in hooks:
            hook.remove()


def copied(value: Any) -> Any:
    """Return a value with its tensors copied; plain containers are walked."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if type(value) in (list, tuple):
        return type(value)(copied(one) for one in value)
    if type(value) is dict:
        return {name: copied(one) for name, one in value.items()}
    return value


def is_plain(value: Any) -> bool:
    """Whether a value can be written down as a literal."""
    if isinstance(value, list | tuple):
        return all(is_plain(one) for one in value)
    if isinstance(value, dict):
        return all(isinstance(name, str | int) and is_plain(one) for name, one in value.items())
    return isinstance(value, PLAIN)
