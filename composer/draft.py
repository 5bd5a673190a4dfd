"""A layer while it is being drawn: sizes, inputs and steps so far, and what is known of the running value.

Shapes come from calling the operators on fake tensors with probe sizes: 16 times a prime of its own for
every size. Halves, sums, doubles and shrunken sizes are then none of the others, so that an axis whose
length equals a probe has that size's name, and any other axis has none.
"""

import random
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode

from composer.execution import bind
from composer.plan import RUNNING, Input, Plan, Size, Step, Value
from composer.sizes import BOUNDS, rungs_within
from composer.values import Effect

_PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)
_PROBE_UNIT = 16
_INPUT_NAMES = ("x", "y", "z", "u", "v", "w")

SIZE_NAMES = {
    "N": "BATCH_SIZE",
    "F": "FEATURES",
    "C": "CHANNELS",
    "L": "LENGTH",
    "H": "HEIGHT",
    "W": "WIDTH",
}
"""Name of an axis of the first input, by its letter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The value that the next operator will read."""

    layout: str
    """A letter per axis: N batch, C channels, F features, L length, H height, W width."""
    names: tuple[str | None, ...]
    """Name of each axis' size; None where it follows from others."""
    tensor: Tensor
    """Fake tensor of probe sizes."""
    nonnegative: bool = False
    """Whether no entry can be negative."""
    pinned: frozenset[tuple[str, str]] = frozenset()
    """(statistic, axis letter): fixed along an axis by construction, such as the mean after a norm."""

    def axis(self, letter: str) -> int:
        """Return the number of the axis."""
        return self.layout.index(letter)

    def size(self, letter: str) -> Size:
        """Return the named size of the axis. Raises ValueError where it has no name."""
        name = self.names[self.axis(letter)]
        if name is None:
            raise ValueError(f"axis {letter} of {self.layout} has no name")
        return Size(name)


@dataclass
class Draft:
    """Collects sizes, inputs and steps; the only record of the composer that changes."""

    rng: random.Random
    sizes: dict[str, int] = field(default_factory=dict)
    axes: dict[str, str] = field(default_factory=dict)
    probes: dict[str, int] = field(default_factory=dict)
    inputs: list[Input] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    """What each step does to values."""
    tensors: dict[str, Tensor] = field(default_factory=dict)
    mode: FakeTensorMode = field(default_factory=FakeTensorMode)

    def start(self, layout: str) -> Running:
        """Add the first input and return it."""
        names = [self.axis_size(letter, SIZE_NAMES[letter]).name for letter in layout]
        self.input(tuple(names))
        return Running(layout=layout, names=tuple(names), tensor=self.tensors[RUNNING])

    def axis_size(self, letter: str, name: str) -> Size:
        """Add a size that the solver may change; a second one of that name is called `NAME_2`."""
        name = self._free_name(name)
        self.sizes[name] = self.rng.choice(rungs_within(*BOUNDS[letter]))
        self.probes[name] = _PROBE_UNIT * _PRIMES[len(self.axes)]
        self.axes[name] = letter
        return Size(name)

    def constant(self, name: str, size: int) -> Size:
        """Add a named integer that stays as it is, such as a kernel size."""
        name = self._free_name(name)
        self.sizes[name] = self.probes[name] = size
        return Size(name)

    def input(self, shape: tuple[str, ...]) -> Value:
        """Add a tensor to `get_inputs`."""
        name = _INPUT_NAMES[len(self.inputs)]
        self.inputs.append(Input(name, shape))
        with self.mode:
            self.tensors[name] = torch.empty([self.probes[size] for size in shape])
        return Value(name)

    def shape_of(self, step: Step, running: Running) -> tuple[Tensor, tuple[str | None, ...]]:
        """Call the step on fake tensors; return its result and the names of the result's axes."""
        with self.mode, torch.no_grad():
            result = bind(step, self.probes)({**self.tensors, RUNNING: running.tensor})
        by_probe = {self.probes[name]: name for name in self.axes}
        return result, tuple(by_probe.get(length) for length in result.shape)

    def plan(self) -> Plan:
        """Return what was drawn."""
        return Plan(
            inputs=tuple(self.inputs), steps=tuple(self.steps), sizes=dict(self.sizes), axes=dict(self.axes)
        )

    def _free_name(self, name: str) -> str:
        if name not in self.sizes:
            return name
        return next(f"{name}_{n}" for n in range(2, 100) if f"{name}_{n}" not in self.sizes)
