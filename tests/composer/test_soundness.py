"""Layers that are not worth computing are refused; similar ones that are worth it are not."""

import pytest

from composer.soundness import sound

WIDE = {"N": 64, "F": 1296, "C": 112, "L": 384, "H": 48, "W": 48}


def is_sound(draft, **sizes: int) -> bool:
    plan = draft.plan()
    wanted = {**WIDE, **sizes}
    return sound(plan.resized({name: wanted[letter] for name, letter in plan.axes.items()}), draft.effects)


@pytest.mark.parametrize(
    ("why", "names"),
    [
        ("nothing is negative after a sigmoid", ["sigmoid", "relu"]),
        ("a second ReLU changes nothing", ["relu", "relu"]),
        ("the sign is lost in the square anyway", ["abs", "square"]),
        ("a ReLU undoes the leak", ["leaky_relu", "relu"]),
        ("the largest of many is positive all the same", ["relu", "amax"]),
        ("the largest of many is positive already", ["amax", "relu"]),
        ("zeros pass where a thousand columns share 1", ["Softmax"]),
        ("a mean over many entries barely varies", ["sigmoid", "mean"]),
    ],
)
def test_degenerate_layer_is_refused(chain, why, names):
    assert not is_sound(chain("NF", *names)), why


@pytest.mark.parametrize(
    "names",
    [["sigmoid", "tanh"], ["sigmoid", "square"], ["Linear", "relu"], ["amax", "sin"], ["abs", "Linear"],
     ["log_softmax"], ["Softmax", "LayerNorm"], ["mul", "gelu"], ["matmul", "sin"]],
)  # fmt: skip
def test_worthwhile_layer_is_not_refused(chain, names):
    assert is_sound(chain("NF", *names))


def test_softmax_is_judged_by_its_width(chain):
    draft = chain("NCHW", "Softmax")
    assert is_sound(draft, C=16)
    assert not is_sound(draft, C=256)


@pytest.mark.parametrize(
    ("why", "layout", "names"),
    [
        ("rows of a softmax add up to 1", "NF", ["Softmax", "sum"]),
        ("a norm leaves the mean at 0", "NF", ["LayerNorm", "mean"]),
        ("a norm leaves the deviation at 1", "NF", ["LayerNorm", "std"]),
        ("squares of normed entries have mean 1", "NF", ["LayerNorm", "square", "mean"]),
        ("a log-softmax has a fixed sum of exponentials", "NF", ["log_softmax", "logsumexp"]),
        ("a norm of a norm is the norm", "NF", ["RMSNorm", "LayerNorm"]),
        ("the bias is taken away again", "NCHW", ["Conv2d", "InstanceNorm2d"]),
        (
            "so it is after pooling",
            "NCHW",
            ["Conv2d", "MaxPool2d", "InstanceNorm2d"],
        ),
        ("a mean does not see the order", "NF", ["fliplr", "gelu", "amax"]),
        ("a cosine does not see the length", "NF", ["RMSNorm", "CosineSimilarity"]),
    ],
)
def test_operators_that_cancel_are_not_put_together(chain, why, layout, names):
    assert chain(layout, *names) is None, why


def test_a_product_with_weights_frees_what_was_fixed(chain):
    assert chain("NF", "LayerNorm", "Linear", "sum") is not None


def test_roots_follow_what_cannot_be_negative(chain):
    for names in (["softplus", "sqrt"], ["abs", "mean", "log1p"], ["hypot", "sqrt"], ["Softmax", "sqrt"]):
        assert chain("NF", *names) is not None, names


def test_an_input_that_drowns_is_refused(chain):
    assert is_sound(chain("NLF", "bmm", "maximum"), F=16)
    assert not is_sound(chain("NLF", "bmm", "bmm", "add"), F=1296)


def test_values_that_saturate_beside_a_fresh_input_are_refused(chain):
    assert is_sound(chain("NLF", "cdist", "sin", "cat", "hardsigmoid"))
    assert not is_sound(chain("NLF", "cdist", "cat", "hardsigmoid"))


def test_a_norm_of_what_is_normed_already_is_judged_by_the_entries_that_it_sees(chain):
    padded = chain("NCHW", "CircularPad2d", "BatchNorm2d")
    assert not is_sound(padded)
    assert is_sound(padded, N=2, H=12, W=12)
    assert is_sound(chain("NCHW", "gelu", "BatchNorm2d"))
    for norm in ("BatchNorm2d", "GroupNorm", "InstanceNorm2d"):
        assert is_sound(chain("NCHW", norm, "gelu")), norm
