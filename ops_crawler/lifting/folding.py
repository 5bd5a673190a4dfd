"""Constant folding on syntax trees: branches that a known value never takes are left out."""

import ast
from collections.abc import Mapping
from typing import Any

_UNKNOWN = object()


def fold(node: Any, known: Mapping[str, Any] | None = None) -> Any:
    """Return the tree with decided tests resolved; `known` are names that always hold one value."""
    return _Folder(known or {}).visit(node)


class _Folder(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, Any]) -> None:
        self.known = known

    def visit(self, node: ast.AST) -> Any:
        result = super().visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(result, name, None)
            if isinstance(block, list):
                setattr(result, name, _tidy(block, needed=name == "body"))
        return result

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        value = self.value(node.test)
        if value is _UNKNOWN:
            if not _tidy(node.orelse, needed=False) and _is_empty(node.body) and _is_pure(node.test):
                return None
            return node
        return (node.body if value else node.orelse) or ast.Pass()

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        value = self.value(node.test)
        return node if value is _UNKNOWN else node.body if value else node.orelse

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        decides = isinstance(node.op, ast.Or)
        kept: list[ast.expr] = []
        for part in node.values:
            value = self.value(part)
            if value is _UNKNOWN:
                kept.append(part)
            elif bool(value) is decides:
                kept.append(part)
                break
        kept = kept or node.values[-1:]
        return kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)

    def value(self, node: ast.expr) -> Any:
        """Return what a test is known to be, `_UNKNOWN` where it is not."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.known.get(node.id, _UNKNOWN)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            value = self.value(node.operand)
            return value if value is _UNKNOWN else not value
        if isinstance(node, ast.BoolOp):
            values = [self.value(part) for part in node.values]
            decides = isinstance(node.op, ast.Or)
            if any(value is not _UNKNOWN and bool(value) is decides for value in values[:1]):
                return decides
            return _UNKNOWN if any(value is _UNKNOWN for value in values) else not decides
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = self.value(node.left), self.value(node.comparators[0])
            if left is not _UNKNOWN and right is not _UNKNOWN:
                return _compared(node.ops[0], left, right)
        return _UNKNOWN


def _compared(operator: ast.cmpop, left: Any, right: Any) -> Any:
    if isinstance(operator, ast.Eq | ast.Is):
        return left == right
    if isinstance(operator, ast.NotEq | ast.IsNot):
        return left != right
    return _UNKNOWN


def _tidy(block: list[ast.stmt], needed: bool) -> list[ast.stmt]:
    kept = [part for part in block if not isinstance(part, ast.Pass)]
    return kept or ([ast.Pass()] if needed else [])


def _is_empty(block: list[ast.stmt]) -> bool:
    return all(isinstance(part, ast.Pass) for part in block)


def _is_pure(test: ast.expr) -> bool:
    """Whether a test may be left out; a call might do something."""
    return not any(isinstance(part, ast.Call | ast.NamedExpr) for part in ast.walk(test))
