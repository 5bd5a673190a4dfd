import ast
import itertools
import random

import pytest

from filters.similarity.syntax_trees import Forest, ast_similarity, best_assignment, model_class

LAYER = """
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        y = self.proj(x)
        if self.training:
            y = y + 1
        return torch.relu(y)
"""
LOOPS = """
import torch
class Model:
    def forward(self, xs):
        total = [x + 1 for x in xs if x]
        for x in xs:
            while x:
                x = x - 1
        return total, {k: v for k, v in xs}
"""
LONE_CLASS = "class Model:\n    pass\n"


def score(left: str, right: str) -> float:
    forest = Forest()
    return ast_similarity(forest.plant(ast.parse(left)), forest.plant(ast.parse(right)))


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (LAYER, LAYER, 1.0),
        (LAYER, LAYER.replace("proj", "layer"), 1.0),
        (LAYER, LAYER.replace("relu", "sigmoid"), 1.0),
        (LAYER, LAYER.replace("(self, x):", '(self, x):\n        """Doc."""'), 0.4847),
        (LAYER, LAYER.replace("(self, x)", "(self, x: torch.Tensor)"), 0.9577),
        (LAYER, LAYER.replace("(width, width)", "(width, width, bias=False)"), 0.8569),
        (LAYER, LAYER.replace("return", "y = y * 2\n        return"), 0.4648),
        (LAYER, LAYER.replace("        if self.training:\n            y = y + 1\n", ""), 0.5077),
        (LOOPS, LAYER, 0.0631),
        (LOOPS, LOOPS.replace("x + 1", "x"), 0.9575),
        (LOOPS, LOOPS.replace("while x", "while x > 1"), 0.923),
        (LONE_CLASS, LAYER, 0.0),
        (LONE_CLASS, LONE_CLASS, 0.0),
        ("", LAYER, 0.0),
        ("", "", 0.0),
    ],
)
def test_scores_are_those_of_the_definition(left, right, expected):
    """Worked out once with the reference implementation; an empty side, where it divides by zero, is 0."""
    assert score(left, right) == expected
    assert score(right, left) == expected


def test_the_class_model_alone_is_compared():
    module = ast.parse("import torch\nclass Other: pass\n" + LAYER + "def get_inputs(): return []\n")
    assert [node.name for node in model_class(module).body] == ["Model"]
    assert model_class(ast.parse("x = 1")).body == []


def test_best_assignment_is_the_best_of_all():
    draw = random.Random(0)
    for _ in range(200):
        rows, columns = draw.randint(1, 5), draw.randint(1, 5)
        worth = [[draw.randint(0, 9) for _ in range(columns)] for _ in range(rows)]
        wide = worth if rows <= columns else [list(column) for column in zip(*worth, strict=True)]
        every = itertools.permutations(range(len(wide[0])), len(wide))
        assert best_assignment(worth) == max(sum(r[c] for r, c in zip(wide, p, strict=True)) for p in every)


def test_a_forest_forgets_what_was_planted_last():
    forest = Forest()
    first = forest.plant(ast.parse(LAYER))
    size = len(forest.kinds)
    second = forest.plant(ast.parse(LOOPS))
    assert len(forest.kinds) > size
    forest.prune(size)
    assert len(forest.numbers) == len(forest.children) == len(forest.sizes) == size
    assert forest.plant(ast.parse(LAYER)).significant == first.significant
    assert forest.plant(ast.parse(LOOPS)).significant == second.significant


def test_agrees_with_the_reference_implementation(ops_6k):
    """200 pairs of classes and whole files, to four decimals."""
    module = "continuous_eval.metrics.code.python.code_deterministic_metrics"
    original = pytest.importorskip(module, reason="needs the package continuous-eval", exc_type=ImportError)
    metric = original.PythonASTSimilarity()
    draw = random.Random(0)
    short = [row["code"] for row in ops_6k if len(row["code"]) < 3_000]
    for number in range(200):
        left, right = draw.sample(short, 2)
        if number % 3:
            left, right = (ast.unparse(model_class(ast.parse(code))) for code in (left, right))
        expected = metric.compute(left, right)["Python_AST_Similarity"]
        assert score(left, right) == pytest.approx(expected, abs=1e-9)
