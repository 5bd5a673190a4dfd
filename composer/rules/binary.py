"""Element-wise operators of two or three tensors: the running value and fresh inputs of its shape."""

from collections.abc import Callable

from composer.draft import Draft, Running
from composer.plan import Argument, Value, X
from composer.rules.rule import ANY_LAYOUT, EVERY_AXIS, Call, Rule, rule
from composer.rules.terms import ABOVE_ONE, POSITIVE, is_positive, within

Arguments = Callable[[Value], tuple[Argument, ...]]


def _pair(operator: str, args: Arguments, drawn: str = "normal", **options: object) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        return Call(args=args(draft.input(running.shape(), drawn)))

    return rule(operator, ANY_LAYOUT, call, named=EVERY_AXIS, **options)


def _ranged(operator: str, wanted: str, drawn: str, *, swapped: bool = False, **options: object) -> Rule:
    """The running value is brought into a range."""

    def call(draft: Draft, running: Running) -> Call:
        first, second = within(running, wanted), draft.input(running.shape(), drawn)
        return Call(args=(second, first) if swapped else (first, second))

    return rule(operator, ANY_LAYOUT, call, named=EVERY_AXIS, **options)


def _triple(operator: str, last: str, value: float) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        y = draft.input(running.shape())
        return Call(args=(X, y, draft.input(running.shape(), last)), kwargs=(("value", value),))

    return rule(operator, ANY_LAYOUT, call, named=EVERY_AXIS)


RULES = (
    _pair("torch.add", lambda y: (X, y)),
    _pair("torch.atan2", lambda y: (y, X)),
    _pair("torch.copysign", lambda y: (X, y)),
    _pair("torch.div", lambda y: (X, y), "positive"),
    _pair("torch.fmax", lambda y: (X, y), exact=True),
    _pair("torch.fmin", lambda y: (X, y), exact=True),
    _pair("torch.fmod", lambda y: (X, y), "positive", jumps=True),
    _pair("torch.hypot", lambda y: (X, y)),
    _pair("torch.ldexp", lambda y: (X, y), half=False),
    _pair("torch.lerp", lambda y: (X, y, 0.3)),
    _pair("torch.logaddexp", lambda y: (X, y)),
    _pair("torch.logaddexp2", lambda y: (X, y), half=False),
    _pair("torch.masked_fill", lambda y: (X, y, -0.5), "mask", exact=True),
    _pair("torch.maximum", lambda y: (X, y), exact=True),
    _pair("torch.minimum", lambda y: (X, y), exact=True),
    _pair("torch.mul", lambda y: (X, y)),
    _pair("torch.remainder", lambda y: (X, y), "positive", jumps=True),
    _pair("torch.sub", lambda y: (X, y)),
    _pair("torch.where", lambda y: (is_positive(y), X, y), exact=True),
    _pair("torch.xlogy", lambda y: (X, y), "positive", half=False),
    _pair("torch.special.xlog1py", lambda y: (X, y), "positive", half=False),
    _ranged("torch.igamma", POSITIVE, "positive", half=False),
    _ranged("torch.igammac", POSITIVE, "positive", half=False),
    _ranged("torch.special.zeta", ABOVE_ONE, "positive", half=False),
    _triple("torch.addcmul", "normal", 0.5),
    _triple("torch.addcdiv", "positive", 0.5),
)
