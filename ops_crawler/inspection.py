"""How is a callable called? Read from the callable itself, without running it."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from ops_crawler.operator import Kind, Operator, Parameter

UNKNOWN = "unknown"

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def describe(name: str, kind: Kind, target: Callable[..., Any], source: str, version: str) -> Operator:
    """Return the operator `target`, publicly called `name`. Never fails: what is not told is `unknown`."""
    signature = _signature(target)
    return Operator(
        name=name,
        kind=kind,
        signature=UNKNOWN if signature is None else _one_line(str(signature)),
        parameters=() if signature is None else _parameters(signature),
        summary=_summary(target),
        source=source,
        library_version=version,
    )


def _signature(target: Callable[..., Any]) -> inspect.Signature | None:
    """Functions bound from C++ tell no signature: inspect raises ValueError or TypeError."""
    try:
        return inspect.signature(target)
    except (ValueError, TypeError):
        return None


def _parameters(signature: inspect.Signature) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(name=p.name, required=True)
        if p.default is inspect.Parameter.empty
        else Parameter(name=p.name, required=False, default=_one_line(repr(p.default)))
        for p in signature.parameters.values()
        if p.kind not in _VARIADIC
    )


def _summary(target: Callable[..., Any]) -> str:
    """First paragraph of the docstring that says more than how the operator is called."""
    text = target.__doc__ if isinstance(target.__doc__, str) else ""
    name = getattr(target, "__name__", "")
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        line = _one_line(paragraph)
        if line and not line.startswith(f"{name}("):
            return line
    return ""


def _one_line(text: str) -> str:
    """Without line breaks and without memory addresses, which differ from process to process."""
    return " ".join(re.sub(r" at 0x[0-9a-f]+", "", text).split())
