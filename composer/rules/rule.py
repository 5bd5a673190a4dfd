"""What a rule is: when an operator may follow, how it is called, what it does to values."""

from collections.abc import Callable
from dataclasses import dataclass

from composer.draft import Draft, Running
from composer.plan import Argument, Step
from composer.values import Transfer
from ops_crawler.operator import Kind, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Arguments drawn for one use of an operator: of the constructor, where it is a module."""

    args: tuple[Argument, ...] = ()
    kwargs: tuple[tuple[str, Argument], ...] = ()
    axes: str = ""
    """Letters of the axes that the operator works along."""
    count: int | None = None
    """Entries that one entry of the result combines; None: as many as `axes` hold."""
    layout: str | None = None
    """Of the result; None: as before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one operator takes part in a layer."""

    operator: str
    kind: Kind
    layouts: tuple[str, ...]
    """Accepted layouts of the running value, such as `NCHW`."""
    call: Callable[[Draft, Running], Call]
    transfer: Transfer | None = None
    """None for an element-wise operator, whose effect on values is found by calling it."""
    named: str = ""
    """Letters of axes whose size the call must name."""
    nonnegative: bool = False
    """Takes only values that cannot be negative."""
    pins: tuple[str, ...] = ()
    """Statistics that are fixed along the call's axes from here on: mean, rms, sumexp."""
    shifts: bool = False
    """Adds a learned constant per channel or feature, which is the same along all other axes."""
    refuses: tuple[str, ...] = ()
    """Statistics that must not be fixed along the call's axes already."""
    alone: bool = True
    """May be a layer by itself; False where KernelBench level 1 has that very task."""
    usage: Usage | None = None
    """Of an operator of the user's own."""

    def accepts(self, running: Running) -> bool:
        """Tell whether the operator can be called on such a value."""
        return (
            running.layout in self.layouts
            and all(running.names[running.axis(letter)] for letter in self.named if letter in running.layout)
            and (running.nonnegative or not self.nonnegative)
        )

    def step(self, call: Call) -> Step:
        """Return the plan's step for a drawn call."""
        return Step(
            operator=self.operator, kind=self.kind, args=call.args, kwargs=call.kwargs, usage=self.usage
        )
