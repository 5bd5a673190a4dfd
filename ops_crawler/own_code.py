"""The source text of one's own operator, fit to stand in a task by itself.

A task may import torch, math, typing, collections, dataclasses and functools; whatever else a class or a
function needs has to be defined in the same module, and is taken along.
"""

import ast
import builtins
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

IMPORTABLE = frozenset("__future__ collections dataclasses functools math torch typing".split())
"""Modules that a task may import."""
_TASKS_OWN = frozenset("Model get_inputs get_init_inputs".split())
_USUAL = {"torch": "import torch", "nn": "import torch.nn as nn", "F": "import torch.nn.functional as F"}
"""What tasks call these modules; a source that calls anything else so cannot stand in one."""
_Definition = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


class NoPlainSource(ValueError):
    """The text of an operator cannot stand in a task. The message says in one line what is in the way."""


def plain_source(target: Callable[..., Any]) -> str:
    """Return import lines, then every definition that `target` needs, in the order of its module.

    Raises `NoPlainSource`.
    """
    text = _module_text(target)
    tree = ast.parse(text)
    definitions = {name: node for node in tree.body for name in _defined(node)}
    imports = dict(_imports(tree))
    wanted, lines = {target.__name__}, set()
    if target.__name__ not in definitions:
        raise NoPlainSource(f"{target.__name__} is not defined at the top level of its module")
    left = [target.__name__]
    while left:
        for name in _names_read(definitions[left.pop()]):
            if name in definitions and name not in wanted:
                wanted.add(name)
                left.append(name)
            elif name in imports and name not in definitions:
                lines.add(_import_line(name, *imports[name]))
            elif name not in definitions and not hasattr(builtins, name) and _bound_otherwise(tree, name):
                raise NoPlainSource(f"{name} is bound by a statement that is no plain definition")
    _require_free(wanted)
    if "annotations" in imports and imports["annotations"][0] == "__future__":
        lines.add("from __future__ import annotations")
    kept = [node for node in tree.body if wanted & set(_defined(node))]
    head = "\n".join(sorted(lines, key=lambda line: (not line.startswith("from __future__"), line)))
    return "\n\n\n".join([*([head] if head else []), *(_segment(text, node) for node in kept)]) + "\n"


def parts(code: str) -> tuple[list[str], dict[str, str]]:
    """Return the import lines of a plain source, and its definitions: text by name."""
    tree = ast.parse(code)
    imports = [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    texts = {name: _segment(code, node) for node in tree.body for name in _defined(node)}
    return imports, texts


def clash(one: str, other: str) -> str | None:
    """Return a name that two plain sources define differently, so that no task can hold both."""
    mine, others = parts(one)[1], parts(other)[1]
    return next((name for name in mine if name in others and mine[name] != others[name]), None)


def _module_text(target: Callable[..., Any]) -> str:
    try:
        return inspect.getsource(sys.modules[target.__module__])
    except (OSError, TypeError, KeyError) as error:
        raise NoPlainSource(f"its module's text cannot be read ({error})") from None


def _defined(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def _imports(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str | None]]]:
    """Yield for every imported name its module and, for `from` imports, the member."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                yield bound, (alias.name if alias.asname else bound, None)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((alias.asname or alias.name, (module, alias.name)) for alias in node.names)


def _import_line(name: str, module: str, member: str | None) -> str:
    if module.partition(".")[0] not in IMPORTABLE:
        raise NoPlainSource(f"needs {name} from {module}, which a task cannot import; define it beside")
    path = f"{module}.{member}" if member else module
    if _USUAL.get(name, "").split(" ")[1:2] == [path]:
        return _USUAL[name]
    if name in _USUAL:
        raise NoPlainSource(f"calls {path} {name}, which means something else in a task")
    if member is None:
        return f"import {module}" + (f" as {name}" if name != module.partition(".")[0] else "")
    return f"from {module} import {member}" + (f" as {name}" if name != member else "")


def _names_read(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _bound_otherwise(tree: ast.Module, name: str) -> bool:
    """Whether a conditional or other compound statement of the module binds the name."""
    compound = [n for n in tree.body if isinstance(n, ast.If | ast.Try | ast.With | ast.For | ast.While)]
    return any(
        (isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store))
        or (isinstance(part, ast.FunctionDef | ast.ClassDef) and part.name == name)
        or (isinstance(part, ast.alias) and (part.asname or part.name) == name)
        for statement in compound
        for part in ast.walk(statement)
    )


def _require_free(names: set[str]) -> None:
    """Refuse names that the task around the source uses itself; its sizes are in capitals."""
    for name in sorted(names):
        if name in _TASKS_OWN or name in _USUAL:
            raise NoPlainSource(f"defines {name}, which every task has already; call it otherwise")
        if name.isupper() and not name.startswith("_"):
            raise NoPlainSource(f"defines {name}, which may be the name of a size; call it _{name}")


def _segment(text: str, node: ast.stmt) -> str:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(text.splitlines()[first - 1 : node.end_lineno])
