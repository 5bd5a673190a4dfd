"""A layer before it is text: operators in the order in which they run, their arguments, named sizes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ops_crawler.operator import Kind, Usage

RUNNING = "x"
"""Name of the value that every operator reads and replaces; at the start it is the first input."""


@dataclass(frozen=True, slots=True)
class Size:
    """A named integer, such as `OUT_CHANNELS`: a constant of the module, an argument of `Model`."""

    name: str


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor of `forward`, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class IsPositive:
    """The mask `value > 0`."""

    value: Value


Argument = Size | Value | IsPositive | int | float | str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One operator. A module gets its arguments when it is built and is called with the running value."""

    operator: str
    """Canonical dotted name, such as `torch.nn.Conv2d`."""
    kind: Kind
    args: tuple[Argument, ...]
    kwargs: tuple[tuple[str, Argument], ...] = ()
    usage: Usage | None = None
    """Of an operator of the user's own, whose text stands in the task."""

    def arguments(self) -> Iterator[Argument]:
        """Yield positional, then keyword arguments."""
        yield from self.args
        yield from (argument for _, argument in self.kwargs)

    def reads(self) -> Iterator[str]:
        """Yield the names of the tensors among the arguments; a module's running value is not one of them."""
        for argument in self.arguments():
            if isinstance(argument, Value):
                yield argument.name
            elif isinstance(argument, IsPositive):
                yield argument.value.name


@dataclass(frozen=True, slots=True)
class Input:
    """One tensor of `get_inputs`, standard normal, float32."""

    name: str
    shape: tuple[str, ...]
    """Names of sizes."""


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
        """Dotted names in the order in which they run."""
        return tuple(step.operator for step in self.steps)

    @property
    def operator_count(self) -> int:
        """Operators of torch that run; an own operator counts as those inside it."""
        return sum(len(step.usage.runs) if step.usage else 1 for step in self.steps)

    def resized(self, sizes: Mapping[str, int]) -> "Plan":
        """Return the same layer with other values for some sizes."""
        return replace(self, sizes={**self.sizes, **sizes})
