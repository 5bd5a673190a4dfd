"""Norms and softmax-like operators."""

from composer.draft import Draft, Running
from composer.plan import RUNNING, Value
from composer.rules.rule import Call, Rule
from composer.values import LOG_SOFTMAX, SOFTMAX, SOFTMIN, STANDARDISED, UNIT_NORM, UNIT_RMS, Transfer

_X = Value(RUNNING)
_WITH_FEATURES = ("NF", "NLF", "NCL", "NCHW")


def _feature_axis(running: Running) -> str:
    return "C" if "C" in running.layout else "F"


def _over_features(draft: Draft, running: Running) -> Call:
    return Call(args=(running.size("F"),), axes="F")


def _over_groups(draft: Draft, running: Running) -> Call:
    groups = draft.constant("NUM_GROUPS", draft.rng.choice((2, 4, 8)))
    return Call(args=(groups, running.size("C")), axes=running.layout[1:])


def _over_extent(draft: Draft, running: Running) -> Call:
    return Call(args=(running.size("C"),), kwargs=(("affine", True),), axes=running.layout[2:])


def _along_features(draft: Draft, running: Running) -> Call:
    axis = _feature_axis(running)
    return Call(args=(_X,), kwargs=(("dim", running.axis(axis)),), axes=axis)


def _softmax_module(draft: Draft, running: Running) -> Call:
    axis = _feature_axis(running)
    return Call(kwargs=(("dim", running.axis(axis)),), axes=axis)


def _softmax(operator: str, transfer: Transfer, pins: str) -> Rule:
    module = operator.rpartition(".")[2][0].isupper()
    return Rule(
        operator=operator,
        kind="module" if module else "function",
        layouts=_WITH_FEATURES,
        call=_softmax_module if module else _along_features,
        transfer=transfer,
        pins=(pins,),
        refuses=("sumexp",),
        alone=False,
    )


RULES = (
    Rule(
        operator="torch.nn.LayerNorm",
        kind="module",
        layouts=("NF", "NLF"),
        call=_over_features,
        transfer=STANDARDISED,
        named="F",
        pins=("mean", "rms"),
        refuses=("rms",),
        shifts=True,
        alone=False,
    ),
    Rule(
        operator="torch.nn.RMSNorm",
        kind="module",
        layouts=("NF", "NLF"),
        call=_over_features,
        transfer=UNIT_RMS,
        named="F",
        pins=("rms",),
        refuses=("rms",),
        alone=False,
    ),
    Rule(
        operator="torch.nn.GroupNorm",
        kind="module",
        layouts=("NCL", "NCHW"),
        call=_over_groups,
        transfer=STANDARDISED,
        named="C",
        pins=("mean", "rms"),
        refuses=("rms",),
        shifts=True,
        alone=False,
    ),
    Rule(
        operator="torch.nn.InstanceNorm1d",
        kind="module",
        layouts=("NCL",),
        call=_over_extent,
        transfer=STANDARDISED,
        named="C",
        pins=("mean", "rms"),
        refuses=("rms", "shift"),
        shifts=True,
    ),
    Rule(
        operator="torch.nn.InstanceNorm2d",
        kind="module",
        layouts=("NCHW",),
        call=_over_extent,
        transfer=STANDARDISED,
        named="C",
        pins=("mean", "rms"),
        refuses=("rms", "shift"),
        shifts=True,
        alone=False,
    ),
    Rule(
        operator="torch.nn.functional.normalize",
        kind="function",
        layouts=("NF", "NLF"),
        call=_along_features,
        transfer=UNIT_NORM,
        pins=("rms",),
        refuses=("rms",),
    ),
    _softmax("torch.nn.Softmax", SOFTMAX, "mean"),
    _softmax("torch.nn.functional.softmin", SOFTMIN, "mean"),
    _softmax("torch.nn.functional.log_softmax", LOG_SOFTMAX, "sumexp"),
)
