"""Arguments from the examples in torch's docstrings.

An example is run as it stands, with the operator replaced by one that notes how it is called.
"""

import doctest
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from ops_crawler.inspection import docstring
from ops_crawler.operator import Kind
from ops_crawler.witnesses.calls import Arguments, Call


def calls(name: str, kind: Kind, target: Callable[..., Any]) -> Iterator[Call]:
    """Yield the calls that the docstring's examples make."""
    noted: list[Call] = []
    with _noting(name, kind, target, noted):
        _run_examples(docstring(target))
    yield from noted


@contextmanager
def _noting(name: str, kind: Kind, target: Callable[..., Any], noted: list[Call]) -> Iterator[None]:
    namespace, _, short = name.rpartition(".")
    owner = sys.modules[namespace]
    noting = _noting_module(target, noted) if kind == "module" else _noting_function(target, noted)
    setattr(owner, short, noting)
    try:
        yield
    finally:
        setattr(owner, short, target)


def _noting_function(target: Callable[..., Any], noted: list[Call]) -> Callable[..., Any]:
    def recorded(*args: Any, **kwargs: Any) -> Any:
        noted.append(Call(_kept(args, kwargs)))
        return target(*args, **kwargs)

    return recorded


def _noting_module(target: Callable[..., Any], noted: list[Call]) -> Callable[..., Any]:
    def built(*args: Any, **kwargs: Any) -> nn.Module:
        init = _kept(args, kwargs)
        module: nn.Module = target(*args, **kwargs)
        module.register_forward_pre_hook(
            lambda module, args, kwargs: noted.append(Call(_kept(args, kwargs), init)), with_kwargs=True
        )
        return module

    return built


def _kept(args: Any, kwargs: Any) -> Arguments:
    """Copy the tensors, before the example writes into them."""
    copies = pytree.tree_map_only(Tensor, lambda tensor: tensor.detach().clone(), (args, kwargs))
    return Arguments(*copies)


def _run_examples(text: str) -> None:
    """Run the lines after `>>>`; what they print, and whether they fail, does not matter."""
    torch.manual_seed(0)
    names = {"torch": torch, "nn": nn, "F": F}
    try:
        test = doctest.DocTestParser().get_doctest(text, names, "example", None, None)
    except ValueError:
        return  # indented in a way that is no example
    runner = doctest.DocTestRunner(verbose=False)
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        runner.run(test, out=lambda text: None)
