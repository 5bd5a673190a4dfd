"""A layer while it is being drawn: sizes, inputs and steps so far, and what is known of the running value.

Shapes come from calling the operators on tensors without storage that have probe sizes: 16 times a prime
of its own for every size. Halves, sums, doubles and shrunken sizes are then none of the others, so that an
axis whose length equals a probe has that size's name, and any other axis has none.
"""

import math
import random
from dataclasses import dataclass, field

import torch
from torch import Tensor

from composer.execution import bind
from composer.input_draws import DRAWS, dtype_of
from composer.plan import RUNNING, Input, Plan, Size, Step, Value
from composer.presets import Preset
from composer.sizes import BOUNDS, rungs_within
from composer.values import Effect

_PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79)
_PROBE_UNIT = 16
_INPUT_NAMES = tuple("xyzuvwpqrst")

SIZE_NAMES = {
    "N": "BATCH_SIZE",
    "F": "FEATURES",
    "C": "CHANNELS",
    "L": "LENGTH",
    "D": "DEPTH",
    "H": "HEIGHT",
    "W": "WIDTH",
    "A": "NUM_HEADS",
    "E": "HEAD_DIM",
    "P": "ORDER",
    "T": "LENGTH",
    "V": "VOCABULARY",
}
"""Name of an axis of the first input, by its letter."""

SQUARE = "NPQ"
"""Layout of a batch of square matrices: both axes have the size of P."""

TOKENS = "NT"
"""Layout of integers below the vocabulary's size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The value that the next operator will read."""

    layout: str
    """A letter per axis: N batch, C channels, F features, L length, D depth, H height, W width, A attention
    heads, E features of a head, P and Q rows and columns of square matrices, T tokens."""
    names: tuple[str | None, ...]
    """Name of each axis' size; None where it follows from others."""
    tensor: Tensor
    """Without storage, of probe sizes."""
    low: float = -math.inf
    """No entry is smaller."""
    high: float = math.inf
    """No entry is larger."""
    exact: bool = True
    """Whether entries are those of inputs, without rounding: jumps of an operator cannot blow it up."""
    pinned: frozenset[tuple[str, str]] = frozenset()
    """(statistic, axis letter): fixed along an axis by construction, such as the mean after a norm."""

    @property
    def nonnegative(self) -> bool:
        """Whether no entry can be negative."""
        return self.low >= 0

    def axis(self, letter: str) -> int:
        """Return the number of the axis."""
        return self.layout.index(letter)

    def size(self, letter: str) -> Size:
        """Return the named size of the axis. Raises ValueError where it has no name."""
        name = self.names[self.axis(letter)]
        if name is None:
            raise ValueError(f"axis {letter} of {self.layout} has no name")
        return Size(name)

    def shape(self) -> tuple[str, ...]:
        """Return the names of all sizes. Raises ValueError where one has none."""
        if None in self.names:
            raise ValueError(f"{self.layout} has sizes without name")
        return tuple(name for name in self.names if name)


@dataclass
class Draft:
    """Collects sizes, inputs and steps; the only record of the composer that changes."""

    rng: random.Random
    dtype: str = "float32"
    """Floating dtype of inputs and parameters."""
    preset: Preset | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    fixed: set[str] = field(default_factory=set)
    """Axes whose size is a preset's."""
    probes: dict[str, int] = field(default_factory=dict)
    inputs: list[Input] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    """What each step does to values."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    _named_before: tuple[str, ...] = ()

    def start(self, layout: str, drawn: str = "normal") -> Running:
        """Add the first input and return it."""
        letters = layout.replace("Q", "")
        names = [self.axis_size(letter, SIZE_NAMES[letter]).name for letter in letters]
        names += names[-1:] * ("Q" in layout)
        if layout == TOKENS:
            below = self.axis_size("V", SIZE_NAMES["V"])
            self.input(tuple(names), "indices", below=below)
        else:
            self.input(tuple(names), drawn)
        low, high = DRAWS[drawn].bounds
        return Running(layout=layout, names=tuple(names), tensor=self.tensors[RUNNING], low=low, high=high)

    def axis_size(self, letter: str, name: str) -> Size:
        """Add a size that the solver may change; a second one of that name is called `NAME_2`."""
        name = self._free_name(name)
        sizes = self.preset.sizes.get(letter) if self.preset else None
        if sizes:
            again = letter in self.axes.values()
            self.sizes[name] = self.rng.choice(sizes) if again else sizes[0]
            self.fixed.add(name)
        else:
            self.sizes[name] = self.rng.choice(rungs_within(*BOUNDS[letter]))
        self.probes[name] = _PROBE_UNIT * _PRIMES[len(self.axes)]
        self.axes[name] = letter
        return Size(name)

    def constant(self, name: str, size: int) -> Size:
        """Add a named integer that stays as it is, such as a kernel size."""
        name = self._free_name(name)
        self.sizes[name] = self.probes[name] = size
        return Size(name)

    def input(self, shape: tuple[str, ...], drawn: str = "normal", *, below: Size | None = None) -> Value:
        """Add a tensor to `get_inputs`."""
        name = _INPUT_NAMES[len(self.inputs)]
        tensor = Input(name, shape, drawn, below.name if below else None, self.dtype)
        self.inputs.append(tensor)
        self.tensors[name] = torch.empty(
            [self.probes[size] for size in shape], dtype=dtype_of(tensor), device="meta"
        )
        return Value(name)

    def divisors(self, size: Size, wanted: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of some integers that divide whatever the size may become."""
        fixed = size.name not in self.axes or size.name in self.fixed
        values = (self.sizes[size.name],) if fixed else rungs_within(*BOUNDS[self.axes[size.name]])
        return tuple(number for number in wanted if all(value % number == 0 for value in values))

    def shape_of(self, step: Step, running: Running) -> tuple[Tensor, tuple[str | None, ...]]:
        """Call the step without storage; return its result and the names of the result's axes.

        Only sizes that the running value has or that only this step reads can be among them: what was
        halved and doubled again has its old size only where that was even.
        """
        with torch.device("meta"), torch.no_grad():
            result = bind(step, self.probes)({**self.tensors, step.source: running.tensor})
        used = {name for name in self._named_before if name not in running.names}
        by_probe = {self.probes[name]: name for name in self.axes if name not in used}
        return result, tuple(by_probe.get(length) for length in result.shape)

    def mark(self) -> None:
        """Note that a step begins: sizes from here on are its own."""
        self._named_before = tuple(self.axes)

    def plan(self) -> Plan:
        """Return what was drawn."""
        free = {name: letter for name, letter in self.axes.items() if name not in self.fixed}
        return Plan(inputs=tuple(self.inputs), steps=tuple(self.steps), sizes=dict(self.sizes), axes=free)

    def _free_name(self, name: str) -> str:
        if name not in self.sizes:
            return name
        return next(f"{name}_{n}" for n in range(2, 100) if f"{name}_{n}" not in self.sizes)
