"""Sets of the candidate's whose order can be turned round, to see whether the result depends on it.

A process with another hash seed shows most of it, but two elements come in the same order every other
time, and elements without a hash of their own (modules) do not care about the seed at all.
"""

import ast
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_turned = False


@contextmanager
def turned_round() -> Iterator[None]:
    """Iterate the sets of tasks executed by `execute_with_own_sets` backwards while this block runs."""
    global _turned
    _turned = True
    try:
        yield
    finally:
        _turned = False


def _in_order(items: Iterable[Any]) -> Iterator[Any]:
    listed = list(items)
    return reversed(listed) if _turned else iter(listed)


class _Set(set[Any]):
    def __iter__(self) -> Iterator[Any]:
        return _in_order(super().__iter__())


class _FrozenSet(frozenset[Any]):
    def __iter__(self) -> Iterator[Any]:
        return _in_order(super().__iter__())


class _Spelled(ast.NodeTransformer):
    """Spells set displays and comprehensions as calls of `set`."""

    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        return _call_of_set(ast.List(elts=node.elts, ctx=ast.Load()), node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        self.generic_visit(node)
        return _call_of_set(ast.ListComp(elt=node.elt, generators=node.generators), node)


def _call_of_set(argument: ast.expr, node: ast.expr) -> ast.AST:
    call = ast.Call(func=ast.Name(id="set", ctx=ast.Load()), args=[argument], keywords=[])
    return ast.fix_missing_locations(ast.copy_location(call, node))


def uses_sets(code: str) -> bool:
    """True where the text makes a set of its own."""
    return any(
        isinstance(node, ast.Set | ast.SetComp)
        or (isinstance(node, ast.Name) and node.id in ("set", "frozenset"))
        for node in ast.walk(ast.parse(code))
    )


def execute_with_own_sets(code: str, path: str, module: types.ModuleType) -> None:
    """Execute the text in the module so that all sets it makes are ours."""
    vars(module).update(set=_Set, frozenset=_FrozenSet)
    exec(compile(_Spelled().visit(ast.parse(code)), path, "exec"), vars(module))
