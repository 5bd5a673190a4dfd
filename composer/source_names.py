"""Source text as a syntax tree, and what its module-level names stand for. Nothing is executed."""

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef

_MOST_LEAVES = 64
"""A constant is put in place of its name only up to this length: nested tuples grow exponentially."""


class UnreadableCodeError(ValueError):
    """The source text is no Python that can be analysed; the message is one line."""


def parse(code: str) -> ast.Module:
    """Return the syntax tree. Raises `UnreadableCodeError` for whatever the parser cannot take."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except SyntaxError as error:
        raise UnreadableCodeError(f"line {error.lineno or 1}: {error.msg}") from error
    except (RecursionError, MemoryError) as error:
        raise UnreadableCodeError("the code is nested too deeply to be parsed") from error
    except ValueError as error:  # NUL bytes, lone surrogates
        raise UnreadableCodeError(str(error).splitlines()[0]) from error


@dataclass(frozen=True)
class ModuleNames:
    """What the names of a module stand for."""

    imports: dict[str, str] = field(default_factory=dict)
    """Alias to dotted path, of every import statement, also inside functions."""
    definitions: dict[str, list[ast.stmt]] = field(default_factory=dict)
    """Name to the top-level statements that bind it, in order; of several `def` or `class` the last."""
    constants: dict[str, ast.expr] = field(default_factory=dict)
    """Name to its value, where it is bound once, to a literal or to a term of literals and constants."""


def module_names(tree: ast.Module) -> ModuleNames:
    """Return what the names of a module stand for."""
    names = ModuleNames()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                dotted = alias.name if alias.asname else alias.name.partition(".")[0]
                names.imports[alias.asname or dotted] = dotted
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names.imports[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
    for statement in tree.body:
        if isinstance(statement, Function | ast.ClassDef):
            names.definitions[statement.name] = [statement]
        else:
            for name in bound_names(statement):
                names.definitions.setdefault(name, []).append(statement)
    leaves: dict[str, int] = {}
    for name, statements in names.definitions.items():
        statement = statements[0]
        if len(statements) == 1 and isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            value = _value_of(name, targets, statement.value)
            count = None if value is None else _literal_leaves(value, leaves)
            if value is not None and count is not None and count <= _MOST_LEAVES:
                names.constants[name], leaves[name] = value, count
    return names


def bound_names(node: ast.AST) -> list[str]:
    """Return the names that a statement binds, without imports, in the order of appearance."""
    found: dict[str | None, None] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            if not isinstance(part.ctx, ast.Load):
                found[part.id] = None
        elif isinstance(part, ast.arg):
            found[part.arg] = None
        elif isinstance(part, Function | ast.ClassDef | ast.ExceptHandler) and part is not node:
            found[part.name] = None
    return [name for name in found if name is not None]


def dotted_path(node: ast.expr) -> list[str]:
    """Return `["a", "b", "c"]` for the expression `a.b.c`, an empty list for whatever is no such chain."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    return [node.id, *reversed(path)] if isinstance(node, ast.Name) else []


def _value_of(name: str, targets: Sequence[ast.expr], value: ast.expr) -> ast.expr | None:
    """Return the value that `targets = value` gives to a name, `A, B = 1, 2` included."""
    for target in targets:
        if isinstance(target, ast.Name) and target.id == name:
            return value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for part, part_value in zip(target.elts, value.elts, strict=False):
                if isinstance(part, ast.Name) and part.id == name:
                    return part_value
    return None


def _literal_leaves(node: ast.expr, known: dict[str, int]) -> int | None:
    """Return how many constants a literal term has once its names are replaced, None for other terms."""
    if isinstance(node, ast.Constant):
        return 1
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Tuple | ast.List):
        parts = node.elts
    elif isinstance(node, ast.BinOp):
        parts = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp):
        parts = [node.operand]
    else:
        return None
    counts = [_literal_leaves(part, known) for part in parts]
    return None if None in counts else sum(count for count in counts if count is not None)
