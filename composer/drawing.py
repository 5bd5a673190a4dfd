"""Grow a layer: by one operator, by a view that lets another operator follow, by the join of two branches."""

import operator as python_operator
from dataclasses import replace

from composer.draft import Draft, Running
from composer.plan import RUNNING, Step, Term, Value, X
from composer.rules import Call, Rule
from composer.soundness import bounds_after
from composer.values import KEPT, Effect

_FEATURES = "NFCAE"
"""Axes along which a learned shift differs, and the batch."""

BRIDGES = {
    ("NCHW", "NLF"): ("{0}.flatten(2).transpose(1, 2)", lambda x: x.flatten(2).transpose(1, 2)),
    ("NCDHW", "NLF"): ("{0}.flatten(2).transpose(1, 2)", lambda x: x.flatten(2).transpose(1, 2)),
    ("NCL", "NLF"): ("{0}.transpose(1, 2)", lambda x: x.transpose(1, 2)),
    ("NLF", "NCL"): ("{0}.transpose(1, 2)", lambda x: x.transpose(1, 2)),
    ("NALE", "NLF"): ("{0}.transpose(1, 2).flatten(2)", lambda x: x.transpose(1, 2).flatten(2)),
    ("NCDHW", "NCHW"): ("{0}.flatten(2, 3)", lambda x: x.flatten(2, 3)),
    ("NCHW", "NCL"): ("{0}.flatten(2)", lambda x: x.flatten(2)),
}
"""Views between layouts: how they are written, and as functions."""

_RENAMED = {
    ("NCL", "NLF"): {"C": "F", "L": "L"},
    ("NLF", "NCL"): {"L": "L", "F": "C"},
    ("NALE", "NLF"): {"L": "L"},
    ("NCDHW", "NCHW"): {"C": "C", "W": "W"},
    ("NCHW", "NCL"): {"C": "C"},
}
"""Where the axes go that a bridge keeps; elsewhere channels become features."""

JOINS = {
    "gate": ("{0} * {1}", python_operator.mul),
    "residual": ("{0} + {1}", python_operator.add),
}
"""How two branches meet, by the name of the value that waits."""


def follow(
    draft: Draft, running: Running, rule: Rule, *, source: str = RUNNING, target: str = RUNNING
) -> Running | None:
    """Add the rule's operator to the draft; return the new running value, or None where it does not fit."""
    if not rule.accepts(running):
        return None
    draft.mark()
    call = rule.call(draft, running)
    if call is None:
        return None
    if any((statistic, letter) in running.pinned for statistic in rule.refuses for letter in call.axes):
        return None
    step = rule.step(call, draft.dtype, source, target)
    effect = Effect(rule.transfer, tuple(running.axis(letter) for letter in call.axes), call.count)
    try:
        tensor, names = draft.shape_of(step, running)
    except RuntimeError as error:
        if "overflow" in str(error):  # scores between all pairs of a flattened volume's places
            return None
        raise
    if tensor.dim() != len(call.layout or running.layout):
        raise ValueError(f"{rule.operator} on {running.layout} gives {tensor.dim()} axes")
    low, high = bounds_after(step, effect, (running.low, running.high), draft.inputs)
    _add(draft, step, effect)
    return Running(
        layout=call.layout or running.layout,
        names=names,
        tensor=tensor,
        low=low,
        high=high,
        exact=running.exact and rule.exact,
        pinned=_pinned_after(running, rule, call),
    )


def bridge(draft: Draft, running: Running, rule: Rule) -> Running:
    """Return the running value in a layout that the rule accepts, where a view does it."""
    if running.layout in rule.layouts:
        return running
    layouts = [layout for (before, layout) in BRIDGES if before == running.layout and layout in rule.layouts]
    if not layouts:
        return running
    layout = draft.rng.choice(layouts)
    text, compute = BRIDGES[running.layout, layout]
    draft.mark()
    step = Step(operator="", kind="function", args=(Term(text, compute, (X,)),))
    tensor, names = draft.shape_of(step, running)
    _add(draft, step, Effect(KEPT))
    renamed = _RENAMED.get((running.layout, layout), {"C": "F"})
    pinned = frozenset((name, renamed[letter]) for name, letter in running.pinned if letter in renamed)
    return replace(running, layout=layout, names=names, tensor=tensor, pinned=pinned)


def join(draft: Draft, one: Running, other: Running, waiting: str) -> Running | None:
    """Combine the running value with the one that waits under a name in `JOINS`; None where shapes differ."""
    same = one.layout == other.layout and one.tensor.shape == other.tensor.shape
    if not same or not one.tensor.is_floating_point() or not other.tensor.is_floating_point():
        return None
    text, compute = JOINS[waiting]
    step = Step(operator="", kind="function", args=(Term(text, compute, (X, Value(waiting))),))
    _add(draft, step, Effect(None))
    low = 0.0 if one.nonnegative and other.nonnegative else -float("inf")
    return replace(
        one, low=low, high=float("inf"), exact=False, pinned=frozenset(), names=_common(one, other)
    )


def _common(one: Running, other: Running) -> tuple[str | None, ...]:
    return tuple(name or second for name, second in zip(one.names, other.names, strict=True))


def _add(draft: Draft, step: Step, effect: Effect) -> None:
    draft.steps.append(step)
    draft.effects.append(effect)


def _pinned_after(running: Running, rule: Rule, call: Call) -> frozenset[tuple[str, str]]:
    pinned = set(running.pinned)
    if rule.transfer is not None and rule.transfer.mixes:
        pinned = {(statistic, letter) for statistic, letter in pinned if statistic == "shift"}
    pinned |= {(statistic, letter) for statistic in rule.pins for letter in call.axes}
    if rule.shifts:
        pinned |= {("shift", letter) for letter in running.layout if letter not in _FEATURES}
    if call.layout is None:
        return frozenset(pinned)
    left = [letter for letter in running.layout if letter not in call.axes]
    if len(left) != len(call.layout):
        return frozenset()
    renamed = dict(zip(left, call.layout, strict=True))
    return frozenset((statistic, renamed[letter]) for statistic, letter in pinned if letter in renamed)
