"""Grow a layer by one operator."""

from composer.draft import Draft, Running
from composer.rules import Call, Rule
from composer.soundness import nonnegative_after
from composer.values import Effect

_FEATURES = "NFC"
"""Axes along which a learned shift differs, and the batch."""


def follow(draft: Draft, running: Running, rule: Rule) -> Running | None:
    """Add the rule's operator to the draft; return the new running value, or None where it does not fit."""
    if not rule.accepts(running):
        return None
    call = rule.call(draft, running)
    if any((statistic, letter) in running.pinned for statistic in rule.refuses for letter in call.axes):
        return None
    step = rule.step(call)
    effect = Effect(rule.transfer, tuple(running.axis(letter) for letter in call.axes), call.count)
    tensor, names = draft.shape_of(step, running)
    inputs = [tensor.name for tensor in draft.inputs[1:]]
    draft.steps.append(step)
    draft.effects.append(effect)
    return Running(
        layout=call.layout or running.layout,
        names=names,
        tensor=tensor,
        nonnegative=nonnegative_after(step, effect, running.nonnegative, inputs),
        pinned=_pinned_after(running, rule, call),
    )


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
    renamed = dict(zip(left, call.layout, strict=True))
    return frozenset((statistic, renamed[letter]) for statistic, letter in pinned if letter in renamed)
