"""Element-wise operators of one tensor; any layout."""

from composer.plan import RUNNING, Argument, Value
from composer.rules.rule import Call, Rule

ANY_LAYOUT = ("N", "NF", "NLF", "NCL", "NCHW")


def _function(operator: str, *, nonnegative: bool = False, alone: bool = False, **kwargs: Argument) -> Rule:
    call = Call(args=(Value(RUNNING),), kwargs=tuple(kwargs.items()))
    return Rule(
        operator=operator,
        kind="function",
        layouts=ANY_LAYOUT,
        call=lambda draft, running: call,
        nonnegative=nonnegative,
        alone=alone,
    )


def _module(operator: str, *, alone: bool = False, **kwargs: Argument) -> Rule:
    call = Call(kwargs=tuple(kwargs.items()))
    return Rule(
        operator=operator,
        kind="module",
        layouts=ANY_LAYOUT,
        call=lambda draft, running: call,
        alone=alone,
    )


RULES = (
    _module("torch.nn.ELU", alpha=0.7),
    _module("torch.nn.Hardtanh", min_val=-0.8, max_val=1.2),
    _module("torch.nn.Mish", alone=True),
    _module("torch.nn.Tanhshrink", alone=True),
    _function("torch.nn.functional.gelu"),
    _function("torch.nn.functional.hardswish", alone=True),
    _function("torch.nn.functional.leaky_relu", negative_slope=0.2),
    _function("torch.nn.functional.logsigmoid", alone=True),
    _function("torch.nn.functional.relu"),
    _function("torch.nn.functional.silu"),
    _function("torch.nn.functional.softplus"),
    _function("torch.abs", alone=True),
    _function("torch.erf", alone=True),
    _function("torch.log1p", nonnegative=True),
    _function("torch.sigmoid"),
    _function("torch.sin", alone=True),
    _function("torch.sqrt", nonnegative=True),
    _function("torch.square", alone=True),
    _function("torch.tanh"),
)
