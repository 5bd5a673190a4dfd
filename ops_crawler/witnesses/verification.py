"""Do the frozen example calls still give what they gave?"""

from collections.abc import Iterable

from ops_crawler.operator import Operator, Witness
from ops_crawler.torch_source import torch_callables
from ops_crawler.witnesses.execution import witnessed


def unconfirmed(operators: Iterable[Operator]) -> list[str]:
    """Execute every example call again; return the names of those that give something else."""
    callables = {name: target for name, _, target in torch_callables()}
    return [
        operator.name
        for operator in operators
        if operator.witness
        and operator.name in callables
        and not _agrees(
            witnessed(
                operator.kind, callables[operator.name], operator.witness.call, operator.witness.origin
            ),
            operator.witness,
        )
    ]


def _agrees(now: Witness | None, then: Witness) -> bool:
    """aten operators may differ between versions and builds of torch; what goes in and comes out may not."""
    if now is None:
        return False
    facts = ("input_shapes", "input_dtypes", "output_shapes", "output_dtypes", "differentiable")
    return all(getattr(now, fact) == getattr(then, fact) for fact in facts)
