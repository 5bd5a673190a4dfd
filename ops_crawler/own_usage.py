"""How an operator of one's own is called: its usage as text, and a trial of it on small tensors."""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.overrides import TorchFunctionMode, resolve_name

from ops_crawler.aliases import alias_group
from ops_crawler.operator import Kind
from ops_crawler.reasons import counted_inside
from ops_crawler.source import one_line

AXES = "NFLCHW"
LAYOUTS = ("NF", "NLF", "NCL", "NCHW")
"""Tensors that layers work on."""
TRIALS: tuple[Mapping[str, int], ...] = (
    {"N": 2, "F": 32, "L": 48, "C": 16, "H": 24, "W": 40},
    {"N": 3, "F": 64, "L": 32, "C": 48, "H": 40, "W": 16},
)
"""Sizes by axis for trials; like those of tasks, all but the batch are multiples of 8."""


class UsageFault(ValueError):
    """A usage says something that cannot be meant, or the call failed. The message is one line."""


@dataclass(frozen=True, slots=True)
class OwnArgument:
    """One of `Usage.arguments`."""

    name: str | None
    """None: passed by position."""
    axis: str | None
    """Letter of the axis whose size is passed; None: `value` is."""
    value: Any


def own_argument(text: str) -> OwnArgument:
    """Read `F`, `1e-6` or `eps=1e-6`. Raises UsageFault."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        name, value = "", text
    if value.strip() in AXES and len(value.strip()) == 1:
        return OwnArgument(name.strip() or None, value.strip(), None)
    try:
        return OwnArgument(name.strip() or None, None, ast.literal_eval(value.strip()))
    except (ValueError, SyntaxError):
        raise UsageFault(f"argument {text!r} is neither an axis ({', '.join(AXES)}) nor a literal") from None


@dataclass(frozen=True, slots=True)
class Trial:
    """What a call gave."""

    shape: tuple[int, ...]
    runs: tuple[str, ...]
    """Operators of torch that ran inside, canonical names, each once."""


def tried(
    target: Callable[..., Any],
    kind: Kind,
    layout: str,
    arguments: tuple[str, ...],
    inputs: tuple[str, ...],
    sizes: Mapping[str, int],
) -> Trial:
    """Call the operator on small tensors of that layout, real ones and fake ones, which the composer uses.

    Leaves torch's generator alone. Raises UsageFault with what the operator raised.
    """
    unknown = {axis for axis in "".join((layout, *inputs)) if axis not in AXES}
    if unknown or (kind == "module" and inputs):
        raise UsageFault(
            f"axis {unknown.pop()!r} is none of {', '.join(AXES)}" if unknown else "a module takes one tensor"
        )
    args, kwargs = concrete(map(own_argument, arguments), kind, layout, sizes)
    shapes = [[sizes[axis] for axis in axes] for axes in (layout, *inputs)]
    inside = _Inside()
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            call = bound(target, kind, args, kwargs)
            with inside:
                result = call(*(torch.randn(shape) for shape in shapes))
        with FakeTensorMode(), torch.no_grad():
            fake = bound(target, kind, args, kwargs)(*(torch.empty(shape) for shape in shapes))
    except Exception as error:  # whatever the user's own code raises
        raise UsageFault(f"{layout}: {one_line(error)}") from None
    if not isinstance(result, Tensor) or result.dim() != len(layout) or result.shape != fake.shape:
        raise UsageFault(f"{layout}: the result is no tensor with {len(layout)} axes")
    return Trial(tuple(result.shape), tuple(dict.fromkeys(inside.names)))


def concrete(
    arguments: Iterable[OwnArgument], kind: Kind, layout: str, sizes: Mapping[str, int]
) -> tuple[list[Any], dict[str, Any]]:
    """Return positional and keyword arguments for those sizes. Raises UsageFault."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for argument in arguments:
        if argument.axis and argument.axis not in layout:
            raise UsageFault(f"axis {argument.axis} is not in the layout {layout}")
        if argument.axis and kind == "function":
            raise UsageFault("a function takes literals; make it a module to pass it the size of an axis")
        value = sizes[argument.axis] if argument.axis else argument.value
        if argument.name:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return args, kwargs


def bound(
    target: Callable[..., Any], kind: Kind, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return the operator as a function of its tensors; a module is built with the arguments."""
    if kind == "module":
        module: Callable[..., Any] = target(*args, **kwargs).eval()
        return module
    return lambda *tensors: target(*tensors, *args, **kwargs)


class _Inside(TorchFunctionMode):
    """Notes the operators of torch that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if name := counted_inside(resolve_name(func) or ""):
            self.names.append(alias_group(name))
        return func(*args, **(kwargs or {}))
