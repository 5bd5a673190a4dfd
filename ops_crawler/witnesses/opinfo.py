"""Arguments from torch's own tests (`OpInfo`, `ModuleInfo`). The only module that needs `expecttest`.

Their samples are tiny, and among them are edge cases; they show what an operator takes, not what a task
should compute.
"""

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

import torch

from ops_crawler.aliases import alias_group
from ops_crawler.operator import Kind
from ops_crawler.witnesses.calls import Arguments, Call

_SAMPLES_MAX = 40
_DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64)
"""The first of them that an operator takes is used."""


def function_calls(name: str) -> Iterator[Call]:
    """Yield calls of the function with that canonical name."""
    for info in _functions().get(name, ()):
        dtype = next((dtype for dtype in _DTYPES if dtype in info.dtypes), None)
        if dtype is None:
            continue
        torch.manual_seed(0)
        for sample in islice(info.sample_inputs("cpu", dtype, requires_grad=False), _SAMPLES_MAX):
            yield Call(Arguments((sample.input, *sample.args), sample.kwargs))


def module_calls(name: str) -> Iterator[Call]:
    """Yield constructions and calls of the module with that name."""
    for info in _modules().get(name, ()):
        torch.manual_seed(0)
        samples = info.module_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=False
        )
        for sample in islice(samples, _SAMPLES_MAX):
            if sample.forward_input is not None:
                init, forward = sample.constructor_input, sample.forward_input
                yield Call(Arguments(forward.args, forward.kwargs), Arguments(init.args, init.kwargs))


def calls(name: str, kind: Kind) -> Iterator[Call]:
    """Yield calls of an operator."""
    return module_calls(name) if kind == "module" else function_calls(name)


@cache
def _functions() -> dict[str, list[Any]]:
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, list[Any]] = {}
    for info in op_db:
        for name in dict.fromkeys([info.name, *(alias.name for alias in info.aliases)]):
            canonical = alias_group(f"torch.{name}")
            if info not in found.setdefault(canonical, []):
                found[canonical].append(info)
    return found


@cache
def _modules() -> dict[str, list[Any]]:
    from torch.testing._internal.common_modules import module_db

    found: dict[str, list[Any]] = {}
    for info in module_db:
        found.setdefault(f"torch.nn.{info.module_cls.__name__}", []).append(info)
    return found
