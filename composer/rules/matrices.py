"""Linear algebra on batches of small square matrices whose results are unique and well-conditioned."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from composer.draft import SQUARE, Draft, Running
from composer.plan import Argument, Term, X
from composer.rules.rule import Call, Rule, rule
from composer.values import SAMPLE, Transfer, normal, shuffled

_L = "torch.linalg."
_MATRICES = 8
"""Random matrices on which the effect on values is measured, at the least."""


DEFINITE = Term(
    "{0} @ {0}.mT / {0}.shape[-1] + torch.eye({0}.shape[-1], dtype={0}.dtype, device={0}.device)",
    lambda x: x @ x.mT / x.shape[-1] + torch.eye(x.shape[-1], dtype=x.dtype, device=x.device),
    (X,),
)
"""Symmetric, with eigenvalues of 1 and more."""

TAMED = Term("{0} / {0}.shape[-1]", lambda x: x / x.shape[-1], (X,))
"""With a norm of about 1."""

TRIANGULAR = Term(
    "torch.eye({0}.shape[-1], dtype={0}.dtype, device={0}.device) + {0} / {0}.shape[-1]",
    lambda x: torch.eye(x.shape[-1], dtype=x.dtype, device=x.device) + x / x.shape[-1],
    (X,),
)
"""Of which a triangular solver reads one half, with a diagonal near 1."""


def _measured(matrix: Argument, compute: Callable[[Tensor], Tensor]) -> Transfer:
    """Put entries of the sample into random matrices of the order at hand, and compute."""

    def apply(sample: Tensor, order: int) -> Tensor:
        entries = (_MATRICES + SAMPLE // order**2) * order**2
        rounds = [sample[shuffled(SAMPLE, 200 + k)] for k in range(math.ceil(entries / SAMPLE))]
        matrices = torch.cat(rounds)[:entries].reshape(-1, order, order)
        result = compute(matrix.compute(matrices) if isinstance(matrix, Term) else matrices).flatten()
        return result.repeat(math.ceil(SAMPLE / len(result)))[:SAMPLE]

    return Transfer(apply, mixes=True)


def _one(
    operator: str,
    matrix: Argument,
    compute: Callable[[Tensor], Tensor],
    *more: Argument,
    layout: str = SQUARE,
    **options: object,
) -> Rule:
    call = Call(args=(matrix, *more), axes="P", layout=layout)
    transfer = _measured(matrix, compute)
    return rule(operator, (SQUARE,), lambda draft, running: call, transfer=transfer, half=False, **options)


def _solved(operator: str, matrix: Argument, compute: Callable[[Tensor], Tensor], **kwargs: Argument) -> Rule:
    """For right-hand sides that are an input."""

    def call(draft: Draft, running: Running) -> Call:
        y = draft.input(running.shape())
        return Call(args=(matrix, y), kwargs=tuple(kwargs.items()), axes="P")

    return rule(operator, (SQUARE,), call, transfer=_measured(matrix, compute), named="NPQ", half=False)


def _noise(like: Tensor) -> Tensor:
    count = math.ceil(like.numel() / SAMPLE)
    return torch.cat([normal(30 + k) for k in range(count)])[: like.numel()].reshape(like.shape)


RULES = (
    _one(_L + "cholesky", DEFINITE, torch.linalg.cholesky),
    _one(_L + "det", TRIANGULAR, torch.linalg.det, layout="N"),
    _one(_L + "inv", DEFINITE, torch.linalg.inv),
    _one(_L + "inv_ex", DEFINITE, torch.linalg.inv, suffix="[0]"),
    _one(_L + "matrix_exp", TAMED, torch.linalg.matrix_exp),
    _one(_L + "matrix_norm", X, torch.linalg.matrix_norm, layout="N"),
    _one(_L + "matrix_power", TAMED, lambda x: torch.linalg.matrix_power(x, 3), 3),
    _one(_L + "slogdet", DEFINITE, lambda x: torch.linalg.slogdet(x)[1], layout="N", suffix="[1]"),
    _one("torch.logdet", DEFINITE, torch.logdet, layout="N"),
    _solved(_L + "solve", DEFINITE, lambda x: torch.linalg.solve(x, _noise(x))),
    _solved(
        _L + "solve_triangular",
        TRIANGULAR,
        lambda x: torch.linalg.solve_triangular(x, _noise(x), upper=False),
        upper=False,
    ),
)
