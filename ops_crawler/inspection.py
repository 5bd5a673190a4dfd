"""How is a callable called? Read from the callable itself, without running it."""

import inspect
import re
from collections.abc import Callable
from typing import Any

from ops_crawler.categories import category
from ops_crawler.operator import Kind, Operator, Parameter

UNKNOWN = "unknown"

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def describe(
    name: str,
    kind: Kind,
    target: Callable[..., Any],
    *,
    source: str,
    version: str,
    alias_group: str = "",
    set_aside: str | None = None,
) -> Operator:
    """Return the operator `target`, publicly called `name`. Never fails: what is not told is `unknown`."""
    signature = _signature(target)
    return Operator(
        name=name,
        kind=kind,
        signature=UNKNOWN if signature is None else _one_line(str(signature)),
        parameters=() if signature is None else _parameters(signature),
        summary=_summary(target),
        shape_notes=_shape_notes(target),
        category=category(name),
        alias_group=alias_group or name,
        set_aside=set_aside,
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
    return tuple(_parameter(p) for p in signature.parameters.values() if p.kind not in _VARIADIC)


def _parameter(parameter: inspect.Parameter) -> Parameter:
    required = parameter.default is inspect.Parameter.empty
    return Parameter(
        name=parameter.name,
        required=required,
        default=None if required else _one_line(repr(parameter.default)),
        keyword_only=parameter.kind is inspect.Parameter.KEYWORD_ONLY,
    )


def _summary(target: Callable[..., Any]) -> str:
    """First paragraph of the docstring that says more than how the operator is called."""
    name = getattr(target, "__name__", "")
    short = name.removeprefix("special_").removeprefix("linalg_").removeprefix("fft_")
    for paragraph in docstring(target).split("\n\n"):
        line = _one_line(paragraph)
        if line and not line.removeprefix("linalg.").startswith((f"{name}(", f"{short}(")):
            return line
    return ""


def _shape_notes(target: Callable[..., Any]) -> str:
    """Indented lines below `Shape:`, on one line."""
    found = re.search(r"^Shapes?:[ \t]*\n((?:[ \t]+.*\n|[ \t]*\n)+)", docstring(target) + "\n", re.M)
    return _one_line(found.group(1)) if found else ""


def docstring(target: Any) -> str:
    """Return the cleaned docstring, empty where there is none."""
    text = getattr(target, "__doc__", None)
    return inspect.cleandoc(text) if isinstance(text, str) and target is not None else ""


def _one_line(text: str) -> str:
    """Without line breaks and without memory addresses, which differ from process to process."""
    return " ".join(re.sub(r" at 0x[0-9a-f]+", "", text).split())
