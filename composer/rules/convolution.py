"""Convolutions, patches. Extents that a stride or pooling has shortened are not shortened again."""

from functools import partial

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import IMAGES, Call, CallDrawer, Rule, rule
from composer.values import CONTRACTED, KEPT, PROJECTED

_F = "torch.nn.functional."


def _whole(running: Running) -> bool:
    """Tell whether nothing has shortened the extents."""
    return all(running.names[2:])


def _convolution(draft: Draft, running: Running) -> Call:
    """Dense, dilated, grouped or depthwise; keeps the extent, or strides over it where it is long enough."""
    rng = draft.rng
    channels = running.size("C")
    kind = rng.choice(("dense", "dense", "dense", "dilated", "grouped", "depthwise"))
    groups = rng.choice(draft.divisors(channels, (1, 2, 4)))
    out_channels = channels if kind in ("depthwise", "grouped") else draft.axis_size("C", "OUT_CHANNELS")
    wide = kind != "dilated" and len(running.layout) < 5 and rng.random() < 0.5
    kernel_size = draft.constant("KERNEL_SIZE", 5 if wide else 3)
    strides = _whole(running) and kind != "dilated" and rng.random() < 0.3
    kwargs: list[tuple[str, Argument]] = [("stride", 2) if strides else ("padding", "same")]
    if kind == "depthwise":
        kwargs.append(("groups", channels))
    elif kind == "grouped":
        kwargs.append(("groups", groups))
    elif kind == "dilated":
        kwargs.append(("dilation", 2))
    return Call(args=(channels, out_channels, kernel_size), kwargs=tuple(kwargs), axes="C")


def _transposed(draft: Draft, running: Running) -> Call:
    """Doubles the extent or keeps it."""
    rng = draft.rng
    channels, out_channels = running.size("C"), draft.axis_size("C", "OUT_CHANNELS")
    if rng.random() < 0.5:
        kernel_size, kwargs = 2, (("stride", 2),)
    else:
        kernel_size, kwargs = 3, (("padding", 1),)
    kernel = draft.constant("KERNEL_SIZE", kernel_size)
    return Call(args=(channels, out_channels, kernel), kwargs=kwargs, axes="C")


def _given_weight(draft: Draft, running: Running, *, transposed: bool) -> Call:
    """The weight is an input: such as the kernel that another network predicts."""
    kernel = draft.constant("KERNEL_SIZE", 3)
    channels = (draft.axis_size("C", "OUT_CHANNELS").name, running.size("C").name)
    extents = (kernel.name,) * (len(running.layout) - 2)
    weight = draft.input((*(channels[::-1] if transposed else channels), *extents))
    return Call(args=(X, weight), kwargs=(("padding", 1),), axes="C")


def _patches(draft: Draft, running: Running) -> Call:
    """Side by side, or overlapping."""
    size = draft.constant("PATCH_SIZE", draft.rng.choice((2, 3)))
    return Call(args=(size,), kwargs=(("stride", 2),), axes="HW", count=1, layout="NCL")


def _patches_by_function(draft: Draft, running: Running) -> Call:
    size = draft.rng.choice((2, 3))
    return Call(args=(X, size), kwargs=(("stride", 2),), axes="HW", count=1, layout="NCL")


def _module(operator: str, rank: int, call: CallDrawer) -> Rule:
    return rule(operator, (IMAGES[rank - 1],), call, transfer=PROJECTED, named="C", shifts=True)


def _function(operator: str, rank: int, *, transposed: bool) -> Rule:
    call = partial(_given_weight, transposed=transposed)
    return rule(operator, (IMAGES[rank - 1],), call, transfer=CONTRACTED, named="C")


RULES = (
    *(_module(f"torch.nn.Conv{rank}d", rank, _convolution) for rank in (1, 2, 3)),
    *(_module(f"torch.nn.ConvTranspose{rank}d", rank, _transposed) for rank in (1, 2, 3)),
    *(_function(f"{_F}conv{rank}d", rank, transposed=False) for rank in (1, 2, 3)),
    *(_function(f"{_F}conv_transpose{rank}d", rank, transposed=True) for rank in (1, 2, 3)),
    rule("torch.nn.Unfold", ("NCHW",), _patches, transfer=KEPT, exact=True),
    rule(_F + "unfold", ("NCHW",), _patches_by_function, transfer=KEPT, exact=True),
)
