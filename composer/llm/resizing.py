"""Make a model's task larger or smaller by rule: change the constants that only its inputs depend on."""

import ast
import math
from typing import cast

_SMALLEST, _LARGEST = 1, 2**24


def scaled(code: str, factor: float) -> str | None:
    """Return the text with its batch scaled by about that factor; None where no constant can be changed.

    Constants are `NAME = 123` at module level. Changed is the first one that `get_inputs` uses as a size and
    nothing else uses: neither parameters nor arguments of `Model` depend on it, so the layer stays the same.
    """
    if "\r" in code:  # ends lines for Python, but not in `_replaced`
        return None
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    constants = _constants(tree)
    inputs = next((n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "get_inputs"), None)
    if inputs is None:
        return None
    used = [node.id for node in ast.walk(inputs) if isinstance(node, ast.Name)]
    elsewhere = {
        node.id
        for statement in tree.body
        if statement is not inputs
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
    name = next((name for name in constants if name in used and name not in elsewhere), None)
    if name is None:
        return None
    number = constants[name]
    size = _rounded(cast(int, number.value) * factor)
    return None if size == number.value else _replaced(code, number, str(size))


def _constants(tree: ast.Module) -> dict[str, ast.Constant]:
    """Return the integer constants, those of `A, B = 1, 2` included."""
    found: dict[str, ast.Constant] = {}
    for node in tree.body:
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for left, right in pairs:
            if isinstance(left, ast.Name) and isinstance(right, ast.Constant) and type(right.value) is int:
                found[left.id] = right
    return found


def _rounded(size: float) -> int:
    """Return a near size that is a multiple of 8 where it is large enough for one."""
    unit = 8 if size >= 16 else 1
    return max(_SMALLEST, min(round(size / unit) * unit, _LARGEST))


def _replaced(code: str, node: ast.Constant, text: str) -> str:
    """Return the code with one constant exchanged; columns count bytes of UTF-8."""
    lines = code.encode().split(b"\n")
    line = lines[node.lineno - 1]
    lines[node.lineno - 1] = line[: node.col_offset] + text.encode() + line[node.end_col_offset :]
    return b"\n".join(lines).decode()


def factor_for(eager_ms: float, fastest_ms: float, slowest_ms: float) -> float:
    """Return by how much the work must grow to take a time well inside the window."""
    return math.sqrt(fastest_ms * slowest_ms) / eager_ms
