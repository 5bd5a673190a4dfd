import textwrap

import pytest

from composer.canonical import canonical_form, canonical_tokens, family_id
from composer.source_names import UnreadableCodeError

TASK = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, width, eps=1e-5):
        super().__init__()
        self.proj = nn.Linear(width, width)
        self.eps = eps

    def forward(self, x):
        y = F.relu(self.proj(x))
        return y.sum(dim=1) + self.eps


ROWS, WIDTH = 256, 1024


def get_inputs():
    return [torch.rand(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
"""


def edited(*changes: tuple[str, str]) -> str:
    code = TASK
    for old, new in changes:
        assert old in code
        code = code.replace(old, new)
    return code


SAME = {
    "sizes": edited(("256, 1024", "16, 96")),
    "sizes written in place": edited(("torch.rand(ROWS, WIDTH)", "torch.rand(2, 4 * 32)")),
    "names": edited(
        ("self.proj", "self.fc"), ("y", "hidden"), ("(self, x)", "(self, rows)"), ("(x)", "(rows)")
    ),
    "aliases": edited(
        ("import torch.nn as nn", "from torch import nn"),
        ("import torch.nn.functional as F", "from torch.nn.functional import relu as act"),
        ("F.relu", "act"),
    ),
    "comments and docstrings": edited(
        ("    def forward(self, x):", '    def forward(self, x):\n        """Adds."""\n        # note')
    ),
    "annotations": edited(
        ("(self, x)", "(self, x: torch.Tensor) -> torch.Tensor"), ("y = F", "y: torch.Tensor = F")
    ),
    "asserts": edited(
        (
            "        y = F",
            "        assert x.ndim\n        if not x.ndim:\n            raise ValueError\n        y = F",
        )
    ),
    "unused definitions": edited(
        (
            "ROWS, WIDTH = ",
            "import math\ndef pad(n):\n    return n + 1\n\n\nTABLE = {1: 2}\n\nROWS, WIDTH = ",
        )
    ),
    "unused method": edited(
        ("    def forward", "    def describe(self):\n        return 'a layer'\n\n    def forward")
    ),
    "unreachable code": edited(("+ self.eps\n", "+ self.eps\n        return x\n")),
    "old super": edited(("super()", "super(Model, self)")),
    "body in a base class": edited(
        ("class Model", "class Stage"),
        ("ROWS, WIDTH = ", 'class Model(Stage):\n    """Public name."""\n\n\nROWS, WIDTH = '),
    ),
    "order of definitions": TASK.replace("ROWS, WIDTH = 256, 1024\n", "").replace(
        "class Model", "ROWS, WIDTH = 256, 1024\n\n\nclass Model"
    ),
}

OTHER = {
    "operator": edited(("F.relu", "F.gelu")),
    "rank": edited(("torch.rand(ROWS, WIDTH)", "torch.rand(8, ROWS, WIDTH)")),
    "axis": edited(("dim=1", "dim=0")),
    "keyword": edited(("dim=1", "dim=1, keepdim=True")),
    "dtype": edited(("torch.rand(ROWS, WIDTH)", "torch.rand(ROWS, WIDTH, dtype=torch.float16)")),
    "another constant": edited(("1e-5", "1e-3")),
    "kind of inputs": edited(("torch.rand(", "torch.randn(")),
    "which member": edited(("+ self.eps", "+ self.proj.bias")),
}


@pytest.mark.parametrize("change", SAME)
def test_what_does_not_change_the_family(change):
    assert canonical_form(SAME[change]) == canonical_form(TASK)
    assert family_id(SAME[change]) == family_id(TASK)


@pytest.mark.parametrize("change", OTHER)
def test_what_makes_another_family(change):
    assert family_id(OTHER[change]) != family_id(TASK)


def test_rank_given_as_a_constant_tuple_counts():
    shaped = edited(
        ("ROWS, WIDTH = 256, 1024", "SHAPE, WIDTH = (256, 1024), 1024"), ("ROWS, WIDTH)", "SHAPE)")
    )
    other_rank = shaped.replace("(256, 1024)", "(4, 256, 1024)")
    assert family_id(shaped) == family_id(shaped.replace("(256, 1024)", "(9, 12)"))
    assert family_id(shaped) != family_id(other_rank)


def test_small_constructor_arguments_may_be_axes():
    with_axis = edited(("(self, width, eps=1e-5)", "(self, width, axis)"), ("[WIDTH]", "[WIDTH, 1]"))
    assert family_id(with_axis) != family_id(with_axis.replace("[WIDTH, 1]", "[WIDTH, 2]"))
    assert family_id(with_axis) == family_id(with_axis.replace("[WIDTH, 1]", "[3, 1]"))


def test_helpers_are_followed_in_the_order_of_use():
    helpers = "def twice(x):\n    return x + x\n\n\ndef thrice(x):\n    return x + x + x\n\n\nROWS, WIDTH = "
    code = edited(("self.proj(x)", "thrice(twice(self.proj(x)))"), ("ROWS, WIDTH = ", helpers))
    renamed = code.replace("twice", "double").replace("thrice", "triple")
    swapped = code.replace("thrice(twice(", "twice(thrice(")
    assert family_id(code) == family_id(renamed)
    assert family_id(code) != family_id(swapped)


def test_overridden_method_called_through_super_counts():
    code = textwrap.dedent(
        """
        import torch.nn as nn
        class Stage(nn.Module):
            def forward(self, x):
                return x.relu()
        class Model(Stage):
            def forward(self, x):
                return super().forward(x) + 1
        """
    )
    assert canonical_form(code) != canonical_form(code.replace("relu", "sigmoid"))


def test_roots_can_be_chosen():
    tokens = canonical_tokens(TASK, roots=("Model",))
    assert "torch.nn.Linear" in tokens
    assert "torch.rand" not in tokens
    assert canonical_tokens("x = 1") == ()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def f(:\n", "line 1"),
        ("x = 1\0", "null bytes"),
        ("x = '\ud800'", "surrogates"),
        ("x = " + "1" * 6000, "integer"),
        ("x = " + "(" * 300 + "1" + ")" * 300, "line 1"),
        ("x = " + "-" * 60_000 + "1", "deep"),
        ("class Model:\n    def forward(self):\n        return " + "1 + " * 5000 + "1", "deep"),
    ],
)
def test_unreadable_code_has_one_error_with_one_line(code, message):
    with pytest.raises(UnreadableCodeError) as caught:
        canonical_form(code)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_constants_that_grow_exponentially_stay_names():
    lines = ["c0 = (1, 1)"] + [f"c{n + 1} = (c{n}, c{n})" for n in range(60)]
    assert len(canonical_tokens("\n".join([*lines, "Model = c60"]))) < 2000


def test_code_is_never_executed(tmp_path):
    target = tmp_path / "made"
    family_id(f"open({str(target)!r}, 'w')\nclass Model: pass\n")
    assert not target.exists()
