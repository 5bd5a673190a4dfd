"""Norms and softmax-like operators."""

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import BATCHED, IMAGES, Call, CallDrawer, Rule, is_module, rule
from composer.rules.terms import LAST_SIZE
from composer.values import DAMPED, LOG_SOFTMAX, SOFTMAX, SOFTMIN, STANDARDISED, UNIT_NORM, UNIT_RMS, Transfer

_F = "torch.nn.functional."
_TRUE: tuple[str, Argument] = ("affine", True)


def _feature_axis(running: Running) -> str:
    return next(letter for letter in "CFE" if letter in running.layout)


def _over_features(draft: Draft, running: Running) -> Call:
    return Call(args=(running.size("F"),), axes="F")


def _over_last(draft: Draft, running: Running) -> Call:
    return Call(args=(X, LAST_SIZE), axes=running.layout[-1])


def _over_groups(draft: Draft, running: Running) -> Call:
    groups = draft.constant("NUM_GROUPS", draft.rng.choice(draft.divisors(running.size("C"), (1, 2, 4, 8))))
    return Call(args=(groups, running.size("C")), axes=running.layout[1:])


def _over_some_groups(draft: Draft, running: Running) -> Call:
    return Call(
        args=(X, draft.rng.choice(draft.divisors(running.size("C"), (1, 2, 4, 8)))), axes=running.layout[1:]
    )


def _over_extent(draft: Draft, running: Running) -> Call:
    return Call(args=(running.size("C"),), kwargs=(_TRUE,), axes=running.layout[2:])


def _over_batch(draft: Draft, running: Running) -> Call:
    """Statistics of the batch itself; with stored ones of a fresh module, it would pass values on."""
    features = running.size(_feature_axis(running))
    axes = "N" + running.layout[2:]
    return Call(args=(features,), kwargs=(("track_running_stats", False),), axes=axes)


def _along_features(draft: Draft, running: Running) -> Call:
    axis = _feature_axis(running)
    return Call(args=(X,), kwargs=(("dim", running.axis(axis)),), axes=axis)


def _norm(
    operator: str, layouts: tuple[str, ...], call: CallDrawer, *, rms_only: bool = False, **options: object
) -> Rule:
    """Where it comes first its input is not drawn from the standard normal, which is normed already."""
    return rule(
        operator,
        layouts,
        call,
        transfer=UNIT_RMS if rms_only else STANDARDISED,
        pins=("rms",) if rms_only else ("mean", "rms"),
        shifts=is_module(operator) and not rms_only,
        drawn="unit",
        **options,
    )


def _over_neighbours(operator: str) -> Rule:
    """Divides by a power of the mean square of neighbouring channels, strongly enough to notice."""
    kwargs: tuple[tuple[str, Argument], ...] = (("alpha", 0.8), ("beta", 0.75))

    def call(draft: Draft, running: Running) -> Call:
        size = draft.rng.choice((3, 5))
        return Call(args=(size,) if is_module(operator) else (X, size), kwargs=kwargs, axes="C")

    return rule(operator, IMAGES, call, transfer=DAMPED)


def _softmax(operator: str, transfer: Transfer, pins: str, layouts: tuple[str, ...] = BATCHED) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        if operator == "torch.nn.Softmax2d":
            return Call(axes="C")
        axis = _feature_axis(running)
        dim = ("dim", running.axis(axis))
        return Call(kwargs=(dim,), axes=axis) if is_module(operator) else _along_features(draft, running)

    return rule(operator, layouts, call, transfer=transfer, pins=(pins,), refuses=("sumexp",))


_RMS = ("rms",)
_SHIFTED = ("rms", "shift")

RULES = (
    _norm("torch.nn.BatchNorm1d", ("NF", "NCL"), _over_batch, named="FC", refuses=_SHIFTED),
    _norm("torch.nn.BatchNorm2d", ("NCHW",), _over_batch, named="C", refuses=_SHIFTED),
    _norm("torch.nn.BatchNorm3d", ("NCDHW",), _over_batch, named="C", refuses=_SHIFTED),
    _norm("torch.nn.GroupNorm", IMAGES, _over_groups, named="C", refuses=_RMS),
    _norm("torch.nn.InstanceNorm1d", ("NCL",), _over_extent, named="C", refuses=_SHIFTED),
    _norm("torch.nn.InstanceNorm2d", ("NCHW",), _over_extent, named="C", refuses=_SHIFTED),
    _norm("torch.nn.InstanceNorm3d", ("NCDHW",), _over_extent, named="C", refuses=_SHIFTED),
    _norm("torch.nn.LayerNorm", ("NF", "NLF"), _over_features, named="F", refuses=_RMS),
    _norm("torch.nn.RMSNorm", ("NF", "NLF"), _over_features, rms_only=True, named="F", refuses=_RMS),
    _norm(_F + "group_norm", IMAGES, _over_some_groups, named="C", refuses=_RMS),
    _norm(
        _F + "instance_norm",
        IMAGES,
        lambda draft, running: Call(args=(X,), axes=running.layout[2:]),
        refuses=_SHIFTED,
    ),
    _norm(
        _F + "batch_norm",
        ("NF", *IMAGES),
        lambda draft, running: Call(
            args=(X, None, None), kwargs=(("training", True),), axes="N" + running.layout[2:]
        ),
        refuses=_SHIFTED,
    ),
    _norm(_F + "layer_norm", ("NF", "NLF", "NALE"), _over_last, refuses=_RMS),
    _norm(_F + "rms_norm", ("NF", "NLF", "NALE"), _over_last, rms_only=True, refuses=_RMS),
    rule(
        _F + "normalize",
        ("NF", "NLF", "NALE"),
        _along_features,
        transfer=UNIT_NORM,
        pins=_RMS,
        refuses=_RMS,
    ),
    _over_neighbours("torch.nn.LocalResponseNorm"),
    _over_neighbours(_F + "local_response_norm"),
    _softmax("torch.nn.Softmax", SOFTMAX, "mean"),
    _softmax("torch.nn.Softmax2d", SOFTMAX, "mean", ("NCHW",)),
    _softmax("torch.nn.Softmin", SOFTMIN, "mean"),
    _softmax("torch.nn.LogSoftmax", LOG_SOFTMAX, "sumexp"),
    _softmax("torch.softmax", SOFTMAX, "mean"),
    _softmax(_F + "softmin", SOFTMIN, "mean"),
    _softmax(_F + "log_softmax", LOG_SOFTMAX, "sumexp"),
)
