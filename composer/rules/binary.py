"""Element-wise operators of two tensors: the running value and a fresh input of its shape."""

from collections.abc import Callable

from composer.draft import Draft, Running
from composer.plan import RUNNING, Argument, IsPositive, Value
from composer.rules.rule import Call, Rule

_X = Value(RUNNING)


def _pair(operator: str, args: Callable[[Value], tuple[Argument, ...]]) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        return Call(args=args(draft.input(tuple(name for name in running.names if name))))

    return Rule(
        operator=operator, kind="function", layouts=("NF", "NLF", "NCL", "NCHW"), call=call, named="NFLCHW"
    )


RULES = (
    _pair("torch.add", lambda y: (_X, y)),
    _pair("torch.hypot", lambda y: (_X, y)),
    _pair("torch.lerp", lambda y: (_X, y, 0.3)),
    _pair("torch.logaddexp", lambda y: (_X, y)),
    _pair("torch.maximum", lambda y: (_X, y)),
    _pair("torch.mul", lambda y: (_X, y)),
    _pair("torch.where", lambda y: (IsPositive(y), _X, y)),
)
