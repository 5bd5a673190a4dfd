"""Arguments by trying: a bounded number of small tensors and numbers, the fewest arguments first."""

import inspect
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

import torch

from ops_crawler.operator import Kind
from ops_crawler.witnesses.calls import Arguments, Call

TRIES = 600
"""Calls that are tried for one operator."""
_ARGUMENTS_MAX = 3
_NUMBERS = (2, 1, 0.5, (2, 2))
_CONSTRUCTOR = (4, 2, (2, 2))


def calls(kind: Kind, target: Callable[..., Any]) -> Iterator[Call]:
    """Yield at most `TRIES` calls."""
    found = _module_calls(target) if kind == "module" else _function_calls()
    return islice(found, TRIES)


def _pool() -> list[Any]:
    """Tensors of ranks 2 to 5 with 4 features or channels, and indices."""
    generator = torch.Generator().manual_seed(0)
    shapes = ((3, 4), (2, 4, 4), (4, 4), (2, 4, 6, 6), (2, 4, 6, 6, 6))
    tensors: list[Any] = [torch.rand(shape, generator=generator) for shape in shapes]
    return [*tensors, torch.randint(0, 3, (3, 4), generator=generator), torch.tensor([0, 1, 2])]


def _function_calls() -> Iterator[Call]:
    """The first argument is a tensor; numbers are tried before tensors for the others."""
    for count in range(_ARGUMENTS_MAX):
        for first, *others in product(_pool(), *[[*_NUMBERS, *_pool()]] * count):
            yield Call(Arguments((first, *others)))


def _module_calls(target: Callable[..., Any]) -> Iterator[Call]:
    built = _required(target)
    taken = _required(target.forward) - 1  # type: ignore[attr-defined] # without self
    for init in product(_CONSTRUCTOR, repeat=built):
        for args in product(_pool(), repeat=max(taken, 1)):
            yield Call(Arguments(args), Arguments(init))


def _required(target: Callable[..., Any]) -> int:
    parameters = inspect.signature(target).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.default is inspect.Parameter.empty and p.kind in plain for p in parameters)
