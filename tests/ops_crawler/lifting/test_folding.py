"""Branches that a known value never takes are left out."""

import ast

import pytest

from ops_crawler.lifting.folding import fold


@pytest.mark.parametrize(
    ("source", "folded"),
    [
        ("if cache is not None:\n    a()\nelse:\n    b()", "b()"),
        ("if cache is None:\n    a()", "a()"),
        ("x = a if cache is not None else b", "x = b"),
        ("x = cache or b", "x = b"),
        ("if flag and unknown:\n    a()", "if unknown:\n    a()"),
        ("if not flag:\n    a()", ""),
        ("if 'eager' != 'eager':\n    a()\nb()", "b()"),
        ("if unknown:\n    pass", ""),
        ("if unknown():\n    pass", "if unknown():\n    pass"),
    ],
)
def test_decided_tests_are_resolved(source, folded):
    assert ast.unparse(fold(ast.parse(source), {"cache": None, "flag": True})) in (folded, folded or "pass")
