"""What a rule is: when an operator may follow, how it is called, what it does to values."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from composer.draft import SQUARE, TOKENS, Draft, Running
from composer.execution import resolve
from composer.plan import Argument, Dtype, Step, X
from composer.values import UNBOUNDED, Transfer
from ops_crawler.operator import Kind, Usage

ANY_LAYOUT = ("NF", "NLF", "NCL", "NCHW", "NCDHW", "NALE", "N", SQUARE)
"""Layouts of real values."""

BATCHED = ANY_LAYOUT[:6]
"""Those with more than a batch."""

IMAGES = ("NCL", "NCHW", "NCDHW")
"""Channels and one, two or three extents."""

EVERY_AXIS = "NFLCDHWAEPQ"
"""For `Rule.named`: a fresh input has the shape of the running value, so that each size needs a name."""

STARTS = ("NF", "NLF", "NCL", "NCHW", "NCDHW", "NALE")
"""Layouts of the first input; others only where an operator takes nothing else."""

KERNELBENCH_LEVEL_1 = frozenset(
    """adaptiveavgpool1d amax amin argmax argmin avgpool1d avgpool2d avgpool3d baddbmm batchnorm batchnorm1d
    batchnorm2d batchnorm3d bmm conv1d conv2d conv3d convtranspose1d convtranspose2d convtranspose3d
    crossentropy cumprod cumsum einsum elu gelu groupnorm gru hardsigmoid hardtanh hinge instancenorm
    instancenorm1d
    instancenorm2d instancenorm3d kldiv layernorm leakyrelu linear logsoftmax lstm matmul max maxpool1d
    maxpool2d maxpool3d mean min mm mse mul mv norm relu rmsnorm scaleddotproductattention selu sigmoid
    smoothl1 softmax softmax2d softplus softsign sum tanh tripletmargin""".split()
)
"""Kinds of operators that a task of that level consists of, or nearly so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Arguments drawn for one use of an operator: of the constructor, where it is a module."""

    args: tuple[Argument, ...] = ()
    kwargs: tuple[tuple[str, Argument], ...] = ()
    fed: tuple[Argument, ...] = (X,)
    """What a module is called with."""
    fed_kwargs: tuple[tuple[str, Argument], ...] = ()
    axes: str = ""
    """Letters of the axes that the operator works along."""
    count: int | None = None
    """Entries that one entry of the result combines; None: as many as `axes` hold."""
    layout: str | None = None
    """Of the result; None: as before."""


CallDrawer = Callable[[Draft, Running], Call | None]
"""Draws the arguments of one use; None where the operator does not fit after all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How one operator takes part in a layer."""

    operator: str
    kind: Kind
    layouts: tuple[str, ...]
    """Accepted layouts of the running value, such as `NCHW`."""
    call: CallDrawer
    transfer: Transfer | None = None
    """None for an element-wise operator, whose effect on values is found by calling it."""
    named: str = ""
    """Letters of axes whose size the call must name."""
    domain: tuple[float, float] = UNBOUNDED
    """Range in which the running value must lie."""
    drawn: str = "normal"
    """How the first input is drawn where the operator comes first, so that it lies in the domain."""
    suffix: str = ""
    """What makes one real tensor of the result."""
    pins: tuple[str, ...] = ()
    """What is fixed along the call's axes from here on: mean, rms, sumexp; order: nothing but the order of
    entries is new, which a reduction does not see."""
    shifts: bool = False
    """Adds a learned constant per channel or feature, which is the same along all other axes."""
    refuses: tuple[str, ...] = ()
    """Statistics that must not be fixed along the call's axes already."""
    usage: Usage | None = None
    """Of an operator of the user's own."""
    half: bool = True
    """Exists for half types, on every device, and is well-conditioned in them."""
    jumps: bool = False
    """Has jumps, at which rounding decides: takes entries of inputs only."""
    exact: bool = False
    """Adds no rounding: every entry of the result is exact where those of its source are."""

    @property
    def alone(self) -> bool:
        """Whether it may be a layer by itself; not where KernelBench level 1 has that very task."""
        return kind_of(self.operator) not in KERNELBENCH_LEVEL_1

    def accepts(self, running: Running) -> bool:
        """Tell whether the operator can be called on such a value."""
        return (
            running.layout in self.layouts
            and (running.tensor.is_floating_point() or running.layout == TOKENS)
            and all(running.names[running.axis(letter)] for letter in self.named if letter in running.layout)
            and self.domain[0] <= running.low
            and running.high <= self.domain[1]
            and (running.exact or not self.jumps)
        )

    def starts(self) -> tuple[str, ...]:
        """Return layouts in which the operator can come first."""
        usual = tuple(layout for layout in STARTS if layout in self.layouts)
        return usual or self.layouts

    def step(self, call: Call, dtype: str, source: str, target: str) -> Step:
        """Return the plan's step for a drawn call."""
        kwargs = call.kwargs
        if dtype != "float32" and self.kind == "module" and _takes_dtype(self.operator):
            kwargs = (*kwargs, ("dtype", Dtype(dtype)))
        return Step(
            operator=self.operator,
            kind=self.kind,
            args=call.args,
            kwargs=kwargs,
            fed=call.fed,
            fed_kwargs=call.fed_kwargs,
            suffix=self.suffix,
            source=source,
            target=target,
            usage=self.usage,
        )


@cache
def _takes_dtype(operator: str) -> bool:
    """Tell whether the module has parameters; recurrent ones only hand the keyword on."""
    named = "dtype" in inspect.signature(resolve(operator)).parameters
    return named or operator in ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")


def plain(
    operator: str,
    *args: Argument,
    layouts: tuple[str, ...] = ANY_LAYOUT,
    kwargs: dict[str, Argument] | None = None,
    **options: object,
) -> Rule:
    """Return the rule of an element-wise operator with fixed arguments after the running value."""
    module = is_module(operator)
    call = Call(args=args if module else (X, *args), kwargs=tuple((kwargs or {}).items()))
    return rule(operator, layouts, lambda draft, running: call, **options)


def along_one(*more: Argument) -> CallDrawer:
    """Return the call of a function along one axis other than the batch, `more` following the value."""

    def call(draft: Draft, running: Running) -> Call:
        axis = draft.rng.choice(running.layout[1:])
        return Call(args=(X, *more), kwargs=(("dim", running.axis(axis)),), axes=axis)

    return call


def rule(operator: str, layouts: tuple[str, ...], call: CallDrawer, **options: object) -> Rule:
    """Return a rule whose kind follows from the operator's name."""
    kind: Kind = "module" if is_module(operator) else "function"
    return Rule(operator=operator, kind=kind, layouts=layouts, call=call, **options)  # type: ignore[arg-type]


def is_module(operator: str) -> bool:
    """Tell a class of `torch.nn` by its name."""
    return operator.startswith("torch.nn.") and not operator.startswith("torch.nn.functional.")


def short(operator: str) -> str:
    """Return the last part of a dotted name."""
    return operator.rpartition(".")[2]


def kind_of(operator: str) -> str:
    """Return the name that a module shares with its function: `nn.L1Loss` and `F.l1_loss` are `l1`."""
    return short(operator).replace("_", "").lower().removesuffix("loss")
