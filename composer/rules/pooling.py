"""Pooling with windows side by side, or to a fixed extent. What has been shortened is not shortened again."""

from composer.draft import Draft, Running
from composer.plan import X
from composer.rules.rule import IMAGES, Call, Rule, is_module, rule
from composer.values import AVERAGED, LARGEST_OF, LENGTH, Transfer

_F = "torch.nn.functional."


def _pool(operator: str, rank: int, transfer: Transfer, *, power: bool = False) -> Rule:
    """`power`: the operator takes the power of its norm first."""

    def call(draft: Draft, running: Running) -> Call:
        width = 2 if rank == 3 else draft.rng.choice((2, 3))
        norm = (2,) if power else ()
        args = (*norm, draft.constant("POOL_SIZE", width)) if is_module(operator) else (X, *norm, width)
        return Call(args=args, axes=running.layout[2:], count=width**rank)

    exact = transfer is LARGEST_OF
    half = exact or rank < 3
    return rule(operator, (IMAGES[rank - 1],), call, transfer=transfer, named="LDHW", exact=exact, half=half)


def _adaptive(operator: str, rank: int, transfer: Transfer) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        size = 4 if rank == 3 else draft.rng.choice((7, 9, 14))
        args = (draft.constant("OUTPUT_SIZE", size),) if is_module(operator) else (X, size)
        return Call(args=args, axes=running.layout[2:])

    exact = transfer is LARGEST_OF
    return rule(operator, (IMAGES[rank - 1],), call, transfer=transfer, named="LDHW", exact=exact)


_RANKS = (1, 2, 3)

RULES = (
    *(_pool(f"torch.nn.MaxPool{rank}d", rank, LARGEST_OF) for rank in _RANKS),
    *(_pool(f"torch.nn.AvgPool{rank}d", rank, AVERAGED) for rank in _RANKS),
    *(_pool(f"torch.nn.LPPool{rank}d", rank, LENGTH, power=True) for rank in _RANKS),
    *(_adaptive(f"torch.nn.AdaptiveMaxPool{rank}d", rank, LARGEST_OF) for rank in _RANKS),
    *(_adaptive(f"torch.nn.AdaptiveAvgPool{rank}d", rank, AVERAGED) for rank in _RANKS),
    *(_pool(f"{_F}max_pool{rank}d", rank, LARGEST_OF) for rank in _RANKS),
    *(_pool(f"{_F}avg_pool{rank}d", rank, AVERAGED) for rank in _RANKS),
    *(_pool(f"{_F}lp_pool{rank}d", rank, LENGTH, power=True) for rank in _RANKS),
    *(_adaptive(f"{_F}adaptive_max_pool{rank}d", rank, LARGEST_OF) for rank in _RANKS),
    *(_adaptive(f"{_F}adaptive_avg_pool{rank}d", rank, AVERAGED) for rank in _RANKS),
)
