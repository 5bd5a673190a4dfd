"""Convolutions and pooling. Extents that pooling or a stride has shortened are not shortened again."""

from composer.draft import Draft, Running
from composer.plan import Argument
from composer.rules.rule import Call, Rule
from composer.values import AVERAGED, LARGEST_OF, PROJECTED


def _convolution(draft: Draft, running: Running) -> Call:
    """Dense or depthwise; keeps the extent, or strides over it where it is long enough for certain."""
    channels = running.size("C")
    depthwise = draft.rng.random() < 0.3
    out_channels = channels if depthwise else draft.axis_size("C", "OUT_CHANNELS")
    kernel_size = draft.constant("KERNEL_SIZE", draft.rng.choice((3, 5)))
    strides = all(running.names[2:]) and draft.rng.random() < 0.25
    kwargs: list[tuple[str, Argument]] = [("stride", 2) if strides else ("padding", "same")]
    if depthwise:
        kwargs.append(("groups", channels))
    return Call(args=(channels, out_channels, kernel_size), kwargs=tuple(kwargs), axes="C")


def _pool(draft: Draft, running: Running) -> Call:
    """Windows side by side."""
    kernel_size = draft.constant("POOL_SIZE", draft.rng.choice((2, 3)))
    extent = running.layout[2:]
    return Call(args=(kernel_size,), axes=extent, count=draft.sizes[kernel_size.name] ** len(extent))


def _adaptive_pool(draft: Draft, running: Running) -> Call:
    output_size = draft.constant("OUTPUT_SIZE", draft.rng.choice((7, 9, 14)))
    return Call(args=(output_size,), axes=running.layout[2:])


RULES = (
    Rule(
        operator="torch.nn.Conv1d",
        kind="module",
        layouts=("NCL",),
        call=_convolution,
        transfer=PROJECTED,
        named="C",
        shifts=True,
        alone=False,
    ),
    Rule(
        operator="torch.nn.Conv2d",
        kind="module",
        layouts=("NCHW",),
        call=_convolution,
        transfer=PROJECTED,
        named="C",
        shifts=True,
        alone=False,
    ),
    Rule(
        operator="torch.nn.AvgPool1d",
        kind="module",
        layouts=("NCL",),
        call=_pool,
        transfer=AVERAGED,
        named="LHW",
        alone=False,
    ),
    Rule(
        operator="torch.nn.AvgPool2d",
        kind="module",
        layouts=("NCHW",),
        call=_pool,
        transfer=AVERAGED,
        named="LHW",
        alone=False,
    ),
    Rule(
        operator="torch.nn.MaxPool2d",
        kind="module",
        layouts=("NCHW",),
        call=_pool,
        transfer=LARGEST_OF,
        named="LHW",
        alone=False,
    ),
    Rule(
        operator="torch.nn.AdaptiveMaxPool2d",
        kind="module",
        layouts=("NCHW",),
        call=_adaptive_pool,
        transfer=LARGEST_OF,
        named="LHW",
    ),
)
