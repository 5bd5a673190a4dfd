"""Derived labels: what kind of task a row is, and on which side of the split it stands."""

import pytest

from data.labels import categories, category, difficulty, split_of


@pytest.mark.parametrize(
    ("operator", "kind"),
    {
        "torch.nn.Conv2d": "convolution",
        "torch.nn.functional.conv_transpose1d": "convolution",
        "torch.nn.GRUCell": "recurrent",
        "torch.nn.MultiheadAttention": "attention",
        "torch.nn.functional.scaled_dot_product_attention": "attention",
        "torch.nn.RMSNorm": "normalization",
        "torch.linalg.vector_norm": "reduction",
        "torch.logsumexp": "reduction",
        "torch.max": "reduction",
        "torch.maximum": "elementwise",
        "torch.exp": "elementwise",
        "torch.softmax": "activation",
        "torch.nn.GLU": "activation",
        "torch.nn.functional.cross_entropy": "loss",
        "torch.matmul": "linear algebra",
        "torch.nn.Linear": "linear algebra",
        "torch.linalg.inv": "linear algebra",
        "torch.nn.UpsamplingBilinear2d": "resampling",
        "torch.nn.functional.upsample_bilinear": "resampling",
        "torch.cumsum": "scan",
        "torch.topk": "sorting",
        "torch.gather": "indexing",
        "torch.cat": "rearrangement",
        "torch.nn.ReflectionPad2d": "padding",
        "torch.nn.AdaptiveAvgPool2d": "pooling",
        "torch.nn.EmbeddingBag": "embedding",
        "torch.fft.rfft": "fft",
        "torch.cdist": "distance",
    }.items(),
)
def test_category(operator, kind):
    assert category(operator) == kind


def test_categories_are_distinct_and_sorted():
    assert categories(["torch.nn.ReLU", "torch.exp", "torch.nn.GELU"]) == ("activation", "elementwise")


@pytest.mark.parametrize(
    ("operators", "aten_nodes", "wanted"),
    [
        ("torch.nn.Mish", 1, "easy"),
        ("torch.amax", 1, "easy"),
        ("torch.erf torch.sigmoid", 2, "easy"),
        ("torch.erf torch.amax", 2, "medium"),
        ("torch.nn.Conv2d", 2, "medium"),
        ("torch.nn.Linear torch.tanh", 2, "medium"),
        ("torch.nn.Linear torch.tanh", 20, "hard"),
        ("torch.nn.Conv2d torch.nn.GroupNorm", 2, "hard"),
        ("torch.nn.LSTM torch.tanh", 2, "hard"),
        ("torch.erf torch.sin torch.cos torch.exp torch.abs", 5, "hard"),
    ],
)
def test_difficulty_counts_fusions_and_kinds_of_kernels(operators, aten_nodes, wanted):
    assert difficulty(operators.split(), aten_nodes) == wanted


def test_no_addition_makes_a_task_easier():
    levels = ["easy", "medium", "hard"]
    names = ["torch.erf", "torch.amax", "torch.nn.Conv2d", "torch.cumsum", "torch.nn.LayerNorm"]
    for count in range(len(names)):
        for calls in (None, 1, 30, 500):
            level = levels.index(difficulty(names[:count], calls))
            assert level <= levels.index(difficulty(names[: count + 1], calls))
            assert level <= levels.index(difficulty(names[:count], (calls or 0) * 10))


def test_a_set_of_operators_is_on_one_side_of_the_split():
    pairs = [(f"torch.a{first}", f"torch.b{second}") for first in range(100) for second in range(100)]
    sides = [split_of(pair, 10_000) for pair in pairs]
    assert sides == [split_of(pair[::-1] * 2, 20_000) for pair in pairs], (
        "order, repeats and growth do not matter"
    )
    assert 0.04 < sides.count("validation") / len(sides) < 0.06
    assert {split_of(pair, 999) for pair in pairs} == {"train"}
