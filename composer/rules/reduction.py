"""Reductions over one or two axes, never over the batch, never over everything; scans along one axis."""

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import BATCHED, Call, Rule, rule
from composer.values import (
    AVERAGED,
    CUMULATED,
    DEVIATION,
    LARGEST_OF,
    LENGTH,
    LOG_SUM_EXP,
    MIDDLE_OF,
    RUNNING_LARGEST,
    RUNNING_SMALLEST,
    SMALLEST_OF,
    SUMMED,
    VARIANCE,
    Transfer,
)

_AXES = {
    "NF": ("F",),
    "NLF": ("L", "F"),
    "NCL": ("C", "L"),
    "NCHW": ("C", "H", "W", "HW"),
    "NCDHW": ("C", "D", "HW"),
    "NALE": ("E", "L"),
}
"""Axes that may go, by layout."""

REMAINING = {
    "N": "N",
    "NF": "NF",
    "NL": "NF",
    "NC": "NF",
    "NCL": "NCL",
    "NCH": "NCL",
    "NCW": "NCL",
    "NCD": "NCL",
    "NHW": "NCL",
    "NCHW": "NCHW",
    "NDHW": "NCHW",
    "NAL": "NCL",
    "NAE": "NLF",
}
"""Layout of what is left: its last axis counts as features, its middle one as channels."""


def _reduction(
    operator: str,
    transfer: Transfer,
    *refuses: str,
    args: tuple[Argument, ...] = (),
    several: bool = True,
    **options: object,
) -> Rule:
    """`several`: two axes may go at once."""

    def call(draft: Draft, running: Running) -> Call:
        axes = draft.rng.choice([axes for axes in _AXES[running.layout] if several or len(axes) == 1])
        numbers = tuple(running.axis(letter) for letter in axes)
        left = "".join(letter for letter in running.layout if letter not in axes)
        dim = numbers[0] if len(numbers) == 1 else numbers
        return Call(args=(X, *args), kwargs=(("dim", dim),), axes=axes, layout=REMAINING[left])

    return rule(operator, BATCHED, call, transfer=transfer, refuses=(*refuses, "order"), **options)


def _scan(operator: str, transfer: Transfer, suffix: str = "", half: bool = True) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        axis = draft.rng.choice([axes for axes in _AXES[running.layout] if len(axes) == 1])
        return Call(args=(X,), kwargs=(("dim", running.axis(axis)),), axes=axis)

    return rule(operator, BATCHED, call, transfer=transfer, suffix=suffix, half=half)


RULES = (
    _reduction("torch.amax", LARGEST_OF, exact=True),
    _reduction("torch.amin", SMALLEST_OF, exact=True),
    _reduction("torch.kthvalue", SMALLEST_OF, args=(2,), several=False, suffix=".values", exact=True),
    _reduction("torch.linalg.norm", LENGTH, "rms", args=(2,), several=False),
    _reduction("torch.linalg.vector_norm", LENGTH, "rms", args=(2,)),
    _reduction("torch.logsumexp", LOG_SUM_EXP, "sumexp"),
    _reduction("torch.max", LARGEST_OF, several=False, suffix=".values", exact=True),
    _reduction("torch.mean", AVERAGED, "mean"),
    _reduction("torch.median", MIDDLE_OF, "mean", several=False, suffix=".values", exact=True),
    _reduction("torch.min", SMALLEST_OF, several=False, suffix=".values", exact=True),
    _reduction("torch.nanmean", AVERAGED, "mean"),
    _reduction("torch.nanmedian", MIDDLE_OF, "mean", several=False, suffix=".values", exact=True),
    _reduction("torch.nanquantile", MIDDLE_OF, "mean", args=(0.6,), several=False, half=False),
    _reduction("torch.nansum", SUMMED, "mean"),
    _reduction("torch.quantile", MIDDLE_OF, "mean", args=(0.7,), several=False, half=False),
    _reduction("torch.std", DEVIATION, "mean", "rms", "shift"),
    _reduction("torch.std_mean", DEVIATION, "mean", "rms", "shift", suffix="[0]"),
    _reduction("torch.sum", SUMMED, "mean"),
    _reduction("torch.trapezoid", SUMMED, "mean", several=False),
    _reduction("torch.var", VARIANCE, "mean", "rms", "shift"),
    _reduction("torch.var_mean", VARIANCE, "mean", "rms", "shift", suffix="[0]"),
    _scan("torch.cummax", RUNNING_LARGEST, ".values"),
    _scan("torch.cummin", RUNNING_SMALLEST, ".values"),
    _scan("torch.cumsum", CUMULATED),
    _scan("torch.cumulative_trapezoid", CUMULATED),
    _scan("torch.logcumsumexp", LOG_SUM_EXP, half=False),
)
