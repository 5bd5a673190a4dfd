import ast

from composer.source_names import bound_names, dotted_path, module_names, parse

CODE = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from math import pi as PI

A, B = 4, (8, 16)
C = A * 2
D = torch.zeros(A)
E: int = 3
E = 4


def helper(x):
    import os.path
    return x


def helper(y):
    return y
"""


def test_names_of_a_module():
    names = module_names(parse(CODE))
    assert names.imports == {
        "torch": "torch",
        "nn": "torch.nn",
        "F": "torch.nn.functional",
        "PI": "math.pi",
        "os": "os",
    }
    assert {name: ast.unparse(value) for name, value in names.constants.items()} == {
        "A": "4",
        "B": "(8, 16)",
        "C": "A * 2",
    }
    (last,) = names.definitions["helper"]
    assert ast.unparse(last).startswith("def helper(y)")
    assert len(names.definitions["E"]) == 2


def test_bound_names_are_in_order_and_without_imports():
    (function,) = parse(
        "def f(a, *b, c=1, **d):\n"
        "    import os\n"
        "    for e, g in a:\n"
        "        with b as h: i = [j for j in c]\n"
        "    try: pass\n"
        "    except ValueError as k: l += (m := 1)\n"
    ).body
    assert sorted(bound_names(function)) == list("abcdeghijklm")


def test_dotted_path():
    assert dotted_path(ast.parse("a.b.c", mode="eval").body) == ["a", "b", "c"]
    assert dotted_path(ast.parse("a().b", mode="eval").body) == []
