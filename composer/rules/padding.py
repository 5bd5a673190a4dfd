"""Padding of the extents."""

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import IMAGES, Call, Rule, rule
from composer.values import KEPT, PADDED


def _pad(kind: str, rank: int, *more: Argument) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        return Call(args=(draft.constant("PADDING", draft.rng.choice((1, 2, 3))), *more))

    bounded = KEPT if kind in ("Reflection", "Replication", "Circular") else PADDED
    return rule(f"torch.nn.{kind}Pad{rank}d", (IMAGES[rank - 1],), call, transfer=bounded, exact=True)


def _pad_by_function(draft: Draft, running: Running) -> Call:
    before, after = draft.rng.choice((1, 2, 3)), draft.rng.choice((2, 4))
    mode = draft.rng.choice(("reflect", "replicate", "circular"))
    extents = (before, after) * (len(running.layout) - 2)
    return Call(args=(X, extents), kwargs=(("mode", mode),))


RULES = (
    *(_pad("Reflection", rank) for rank in (1, 2, 3)),
    *(_pad("Replication", rank) for rank in (1, 2, 3)),
    *(_pad("Circular", rank) for rank in (1, 2, 3)),
    *(_pad("Constant", rank, 0.7) for rank in (1, 2, 3)),
    *(_pad("Zero", rank) for rank in (1, 2, 3)),
    rule("torch.nn.functional.pad", IMAGES, _pad_by_function, transfer=KEPT, exact=True),
)
