"""Operators of one's own: what a source says of a class or function so that layers can be built from it."""

import importlib.metadata
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch import nn

from ops_crawler.inspection import describe
from ops_crawler.operator import Kind, Operator, Usage
from ops_crawler.own_code import NoPlainSource, plain_source
from ops_crawler.own_usage import LAYOUTS, TRIALS, UsageFault, own_argument, tried
from ops_crawler.source import one_line

_LIVE: dict[Usage, Callable[..., Any]] = {}
"""Classes and functions of the sources that this process has loaded."""


def own_operator(
    target: Callable[..., Any],
    *,
    name: str | None = None,
    layouts: Sequence[str] | None = None,
    arguments: Sequence[str] = (),
    inputs: Sequence[str] = (),
    license: str | None = None,
) -> Operator:
    """Describe an `nn.Module` class or a function of one's own.

    `layouts`, `arguments`, `inputs` and `license` are those of `Usage`; without `layouts`, an operator that
    needs nothing but one tensor is tried on every layout and takes those that leave the shape as it is.
    Never fails: what is in the way stands in `set_aside` and `detail`.
    """
    is_module = inspect.isclass(target) and issubclass(target, nn.Module)
    kind: Kind = "module" if is_module else "function"
    operator = describe(
        name or f"{target.__module__}.{target.__qualname__}",
        kind,
        target,
        source=target.__module__,
        version=_version(target.__module__),
    )
    if config := _config_parameter(target):
        return replace(operator, set_aside="needs_config", detail=f"its constructor takes `{config}`")
    try:
        code = plain_source(target)
    except NoPlainSource as error:
        return replace(operator, set_aside="no_plain_source", detail=str(error))
    missing = _missing(operator, arguments, inputs)
    if missing:
        return replace(operator, detail=f"no layer is built from it: nothing says what {missing} shall be")
    usage = Usage(
        code=code,
        name=target.__name__,
        layouts=tuple(layouts or ()),
        arguments=tuple(arguments),
        inputs=tuple(inputs),
        license=license,
    )
    try:
        usage = _declared(target, kind, usage) if usage.layouts else _inferred(target, kind, usage)
    except UsageFault as error:
        return replace(operator, set_aside="fails", detail=str(error))
    _LIVE[usage] = target
    return replace(operator, usage=usage)


@contextmanager
def own_code_runs() -> Iterator[None]:
    """Turn whatever one's own code raises inside this block into UsageFault."""
    try:
        yield
    except Exception as error:  # whatever the user's own code raises
        raise UsageFault(one_line(error)) from error


def live(usage: Usage) -> Callable[..., Any] | None:
    """Return the class or function whose text the usage holds, None where its source is not loaded here.

    The text itself is never executed: it may come from a file that anybody can write.
    """
    return _LIVE.get(usage)


def _declared(target: Callable[..., Any], kind: Kind, usage: Usage) -> Usage:
    """Return the usage with what ran inside. Raises UsageFault where a layout does not work."""
    trials = [
        tried(target, kind, layout, usage.arguments, usage.inputs, sizes)
        for layout in usage.layouts
        for sizes in TRIALS
    ]
    return replace(usage, runs=max((trial.runs for trial in trials), key=len))


def _inferred(target: Callable[..., Any], kind: Kind, usage: Usage) -> Usage:
    """Return the usage with every layout whose shape the operator leaves alone. Raises UsageFault."""
    fitting: list[str] = []
    faults: list[str] = []
    for layout in LAYOUTS:
        try:
            shapes = [tried(target, kind, layout, (), (), sizes).shape for sizes in TRIALS]
        except UsageFault as error:
            faults.append(str(error))
            continue
        if shapes == [tuple(sizes[axis] for axis in layout) for sizes in TRIALS]:
            fitting.append(layout)
        else:
            faults.append(f"{layout}: the result has another shape")
    if not fitting:
        raise UsageFault(f"takes no layout as it is ({faults[-1]}); tell its usage in a source object")
    return _declared(target, kind, replace(usage, layouts=tuple(fitting)))


def _missing(operator: Operator, arguments: Sequence[str], inputs: Sequence[str]) -> str:
    """Return the required parameters that neither a tensor nor an argument fills."""
    required = [parameter.name for parameter in operator.parameters if parameter.required]
    tensors = 0 if operator.kind == "module" else 1 + len(inputs)
    try:
        given = [own_argument(text) for text in arguments]
    except UsageFault:
        return ""  # told when the usage is tried
    positional = tensors + sum(argument.name is None for argument in given)
    named = {argument.name for argument in given}
    return ", ".join(f"`{name}`" for name in required[positional:] if name not in named)


def _config_parameter(target: Callable[..., Any]) -> str | None:
    """Return the required parameter that takes a config object, if there is one."""
    try:
        parameters = inspect.signature(target).parameters.values()
    except (ValueError, TypeError):
        return None
    for parameter in parameters:
        annotation = getattr(parameter.annotation, "__name__", str(parameter.annotation))
        named = parameter.name in ("config", "cfg", "configuration")
        if parameter.default is inspect.Parameter.empty and (named or annotation.endswith("Config")):
            return parameter.name
    return None


def _version(module: str) -> str:
    try:
        return importlib.metadata.version(module.partition(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return ""
