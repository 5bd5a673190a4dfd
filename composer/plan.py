"""A layer before it is text: operators in the order in which they run, their arguments, named sizes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ops_crawler.operator import Kind, Usage

RUNNING = "x"
"""Name of the value that an operator reads and replaces; at the start it is the first input. Inside the
arguments of a step it stands for the step's source."""


@dataclass(frozen=True, slots=True)
class Size:
    """A named integer, such as `OUT_CHANNELS`: a constant of the module, an argument of `Model`."""

    name: str


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of `forward`, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Dtype:
    """A floating dtype by its name, such as `bfloat16`."""

    name: str


@dataclass(frozen=True, slots=True)
class Term:
    """An expression of other arguments, such as the mask `y > 0`; none of it counts as an operator."""

    text: str
    """Python with `{0}`, `{1}` ... for the arguments."""
    compute: Callable[..., Any]
    """The same as a function."""
    arguments: tuple["Argument", ...]


Argument: TypeAlias = "Size | Value | Dtype | Term | int | float | str | tuple[Argument, ...] | None"

X = Value(RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operator. A module gets its arguments when it is built and is called with `fed`."""

    operator: str
    """Canonical dotted name, such as `torch.nn.Conv2d`; empty for plain arithmetic or a view, the only
    argument of which is the expression."""
    kind: Kind
    args: tuple[Argument, ...] = ()
    kwargs: tuple[tuple[str, Argument], ...] = ()
    usage: Usage | None = None
    """Of an operator of the user's own, whose text stands in the task."""
    fed: tuple[Argument, ...] = (X,)
    """What a module is called with."""
    fed_kwargs: tuple[tuple[str, Argument], ...] = ()
    suffix: str = ""
    """What makes one real tensor of the result, a key of `execution.SUFFIXES`, such as `.values`."""
    source: str = RUNNING
    """Name of the value that takes the place of `RUNNING` in the arguments."""
    target: str = RUNNING
    """Name that the result is given."""

    def arguments(self) -> Iterator[Argument]:
        """Yield all arguments, also those inside tuples and terms."""
        keywords = (argument for _, argument in (*self.kwargs, *self.fed_kwargs))
        fed = self.fed if self.kind == "module" else ()
        yield from _flat((*self.args, *fed, *keywords))

    def reads(self) -> Iterator[str]:
        """Yield the names of the tensors besides the source, each once."""
        names = (argument.name for argument in self.arguments() if isinstance(argument, Value))
        yield from dict.fromkeys(name for name in names if name != RUNNING)


def _flat(arguments: tuple[Argument, ...]) -> Iterator[Argument]:
    for argument in arguments:
        yield argument
        if isinstance(argument, Term):
            yield from _flat(argument.arguments)
        elif isinstance(argument, tuple):
            yield from _flat(argument)


@dataclass(frozen=True, slots=True)
class Input:
    """One tensor of `get_inputs`."""

    name: str
    shape: tuple[str, ...]
    """Names of sizes."""
    drawn: str = "normal"
    """How its entries are drawn, a key of `input_draws.DRAWS`."""
    below: str | None = None
    """Size that bounds integers."""
    dtype: str = "float32"
    """Floating dtype; integers are int64 and masks bool in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One layer with sizes; everything that the rendered source says."""

    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    sizes: Mapping[str, int]
    """Every named size in the order in which it is listed in the source."""
    axes: Mapping[str, str]
    """Sizes that may be changed without touching anything else, with the letter of their axis."""

    @property
    def operators(self) -> tuple[str, ...]:
        """Dotted names in the order in which they run; plain arithmetic and views are none."""
        return tuple(step.operator for step in self.steps if step.operator)

    @property
    def operator_count(self) -> int:
        """Operators of torch that run; an own operator counts as those inside it."""
        return sum(len(step.usage.runs) if step.usage else 1 for step in self.steps if step.operator)

    def resized(self, sizes: Mapping[str, int]) -> "Plan":
        """Return the same layer with other values for some sizes."""
        return replace(self, sizes={**self.sizes, **sizes})
