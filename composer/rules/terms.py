"""Expressions that bring a value into an operator's range by plain arithmetic, and other small terms."""

from composer.draft import Running
from composer.plan import Argument, Term, Value, X

POSITIVE = "positive"
ABOVE_ONE = "above one"
SMALL = "small"
OPEN_SHARE = "open share"

_RANGES = {
    POSITIVE: (0.3, 1e6, "{0} * {0} + 0.5", lambda x: x * x + 0.5),
    ABOVE_ONE: (1.05, 1e6, "{0} * {0} + 1.1", lambda x: x * x + 1.1),
    SMALL: (-0.95, 0.95, "{0} / (1 + {0} * {0})", lambda x: x / (1 + x * x)),
    OPEN_SHARE: (0.02, 0.98, "0.1 + 0.8 / (1 + {0} * {0})", lambda x: 0.1 + 0.8 / (1 + x * x)),
}
"""Range that operators want: lowest, highest, what gets any number into it."""


def within(running: Running, wanted: str) -> Argument:
    """Return the running value, or an expression of it that lies in the wanted range."""
    low, high, text, compute = _RANGES[wanted]
    if low <= running.low and running.high <= high:
        return X
    if wanted == POSITIVE and running.nonnegative:
        return Term("{0} + 0.5", lambda x: x + 0.5, (X,))
    return Term(text, compute, (X,))


def is_positive(value: Value) -> Term:
    """Return the mask `value > 0`."""
    return Term("{0} > 0", lambda y: y > 0, (value,))


LAST_SIZE = Term("{0}.shape[-1:]", lambda x: x.shape[-1:], (X,))
"""Shape to normalise over: the last axis."""
