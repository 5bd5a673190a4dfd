"""Rules for operators of the user's own, made from their usages.

Nothing is known of what they do to values but what a small call shows: their source is the user's own,
trusted code, and loaded in this process (`ops_crawler.own.live`).
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from composer.draft import Draft, Running
from composer.plan import RUNNING, Argument, Value
from composer.rules.rule import Call, Rule
from composer.values import Transfer
from ops_crawler.operator import Kind, Operator, Usage
from ops_crawler.own import live, own_code_runs
from ops_crawler.own_usage import TRIALS, OwnArgument, UsageFault, bound, concrete, own_argument

_INPUTS_MAX = 6
"""Inputs of a task for which a draft has names."""


def own_rules(operators: Iterable[Operator]) -> tuple[Rule, ...]:
    """Return a rule for every operator that has a usage and whose source is loaded."""
    return tuple(
        _rule(operator, operator.usage, target)
        for operator in operators
        if operator.usage and (target := live(operator.usage)) is not None
    )


def _rule(operator: Operator, usage: Usage, target: Callable[..., Any]) -> Rule:
    arguments = tuple(map(own_argument, usage.arguments))

    def call(draft: Draft, running: Running) -> Call:
        tensors: list[Argument] = []
        if len(draft.inputs) + len(usage.inputs) > _INPUTS_MAX:
            raise UsageFault(f"more than {_INPUTS_MAX} inputs")
        if operator.kind == "function":
            others = [draft.input(tuple(running.size(axis).name for axis in axes)) for axes in usage.inputs]
            tensors = [Value(RUNNING), *others]
        return Call(
            args=(*tensors, *(_argument(one, running) for one in arguments if one.name is None)),
            kwargs=tuple((one.name, _argument(one, running)) for one in arguments if one.name is not None),
        )

    return Rule(
        operator=operator.name,
        kind=operator.kind,
        layouts=usage.layouts,
        call=call,
        transfer=Transfer(_sampled(operator.kind, usage, arguments, target), mixes=True),
        named="".join((*usage.inputs, *(argument.axis or "" for argument in arguments))),
        half=False,  # nobody has tried it in half types
        usage=usage,
    )


def _argument(argument: OwnArgument, running: Running) -> Argument:
    value: Argument = running.size(argument.axis) if argument.axis else argument.value
    return value


def _sampled(
    kind: Kind, usage: Usage, arguments: tuple[OwnArgument, ...], target: Callable[..., Any]
) -> Callable[[Tensor, int], Tensor]:
    """Return the transfer that calls the operator on a small tensor of such entries, with fixed weights."""
    layout, sizes = usage.layouts[0], TRIALS[0]
    args, kwargs = concrete(arguments, kind, layout, sizes)

    def transfer(sample: Tensor, count: int) -> Tensor:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), own_code_runs():
            torch.manual_seed(0)
            x = sample[torch.randint(len(sample), [sizes[axis] for axis in layout])].float()
            others = [torch.randn([sizes[axis] for axis in axes]) for axes in usage.inputs]
            result = bound(target, kind, args, kwargs)(x, *others)
        ranks = (sample.argsort().argsort().double() + 0.5) / len(sample)
        return torch.quantile(result.double().flatten(), ranks)

    return transfer
