"""Reductions over one or two axes, never over the batch, never over everything."""

from composer.draft import Draft, Running
from composer.plan import RUNNING, Value
from composer.rules.rule import Call, Rule
from composer.values import AVERAGED, DEVIATION, LARGEST_OF, LOG_SUM_EXP, SUMMED, Transfer

_CHOICES = {"NF": ("F",), "NLF": ("L", "F"), "NCL": ("C", "L"), "NCHW": ("C", "H", "W", "HW")}
"""Axes that may go, by layout."""

_REMAINING = {
    "N": "N",
    "NF": "NF",
    "NL": "NF",
    "NC": "NF",
    "NCL": "NCL",
    "NCH": "NCL",
    "NCW": "NCL",
    "NHW": "NCL",
}
"""Layout of what is left: its last axis counts as features, its middle one as channels."""


def _over_some(draft: Draft, running: Running) -> Call:
    axes = draft.rng.choice(_CHOICES[running.layout])
    numbers = tuple(running.axis(letter) for letter in axes)
    left = "".join(letter for letter in running.layout if letter not in axes)
    dim = numbers[0] if len(numbers) == 1 else numbers
    return Call(args=(Value(RUNNING),), kwargs=(("dim", dim),), axes=axes, layout=_REMAINING[left])


def _reduction(operator: str, transfer: Transfer, *refuses: str, alone: bool = False) -> Rule:
    return Rule(
        operator=operator,
        kind="function",
        layouts=tuple(_CHOICES),
        call=_over_some,
        transfer=transfer,
        refuses=refuses,
        alone=alone,
    )


RULES = (
    _reduction("torch.amax", LARGEST_OF, alone=True),
    _reduction("torch.logsumexp", LOG_SUM_EXP, "sumexp", alone=True),
    _reduction("torch.mean", AVERAGED, "mean"),
    _reduction("torch.std", DEVIATION, "mean", "rms", "shift", alone=True),
    _reduction("torch.sum", SUMMED, "mean"),
)
