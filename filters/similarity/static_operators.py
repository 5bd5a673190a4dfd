"""Which operators a task uses, read off its source text; the code is never executed.

What runs is better known from running it (`filters.worker`). These functions serve where nothing may run:
`opweaver audit --static-only`, and labels that a published set claims. All raise `UnreadableCodeError`.
"""

from collections.abc import Iterable

from composer.canonical import canonical_tokens
from composer.source_names import module_names, parse
from filters.operators import canonical_name, label_of_name, signature_element, style_free
from filters.similarity.interpreter import calls_of_task
from filters.similarity.values import Call, Constant, Value

_RANDOM = frozenset(
    """bernoulli cauchy exponential feature_dropout fractional_max_pool2d fractional_max_pool3d geometric
    gumbel_softmax log_normal multinomial normal poisson rand rand_like randint randint_like randn randn_like
    random randperm uniform FractionalMaxPool2d FractionalMaxPool3d""".split()
)
"""Operators that draw random numbers whatever the mode; in-place forms without their underscore."""

_ARITHMETIC = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "FloorDiv": "floor_divide", "Mod": "remainder",
    "Pow": "pow", "MatMult": "matmul", "USub": "neg", "Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le",
    "Gt": "gt", "GtE": "ge", "Invert": "bitwise_not", "BitAnd": "bitwise_and", "BitOr": "bitwise_or",
}  # fmt: skip
"""Operators of Python, as syntax nodes, by the operator of torch that they are."""

_SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "div", "@": "matmul", "**": "pow"}
"""Labels that published sets write as signs."""

_TRAINING = {
    "dropout": (2, True),
    "dropout1d": (2, True),
    "dropout2d": (2, True),
    "dropout3d": (2, True),
    "alpha_dropout": (2, False),
    "feature_alpha_dropout": (2, False),
    "rrelu": (3, False),
}
"""Functions that are random where their argument `training` is true: its position and its default."""


def static_signature(code: str) -> tuple[str, ...]:
    """Return the signature elements that `Model.forward` calls, in order."""
    elements = (signature_element(call.path) for call in static_calls(code))
    return tuple(element for element in elements if element is not None)


def static_ops(code: str) -> tuple[str, ...]:
    """Return the labels of the operators that `Model.forward` calls, in order, each once."""
    labels = (label_of_name(call.path) for call in static_calls(code))
    return tuple(dict.fromkeys(label for label in labels if label is not None))


def static_random_calls(code: str) -> tuple[str, ...]:
    """Return what `Model.forward` calls in eval mode that draws random numbers, each name once.

    `F.dropout(x)` does: its `training` is True unless it is given.
    """
    names = [canonical_name(call.path) or call.path for call in static_calls(code) if _is_random(call)]
    return tuple(dict.fromkeys(names))


def labels_absent_from_code(code: str, labels: Iterable[str]) -> tuple[str, ...]:
    """Return the labels whose operator the code reachable from `Model` does not even mention.

    Style does not matter (`nn.ReLU`, `F.relu`, `relu`), nor do arithmetic's names (`+`, `add`).
    Labels that are no operator, such as `nn.functional`, are passed over.
    """
    mentioned = {style_free(_spelling(token)) for token in canonical_tokens(code, roots=("Model",))}
    return tuple(label for label in labels if _is_operator(label) and _absent(label, mentioned))


def _spelling(token: str) -> str:
    """Return what a token of the canonical form mentions: a path, an attribute, an operator of Python."""
    name = token.removeprefix("(. ").removeprefix("(")
    return _ARITHMETIC.get(name, name)


def _absent(label: str, mentioned: set[str]) -> bool:
    return style_free(_SIGNS.get(label, label)) not in mentioned


def _is_operator(label: str) -> bool:
    return not label.endswith("functional")


def static_calls(code: str) -> list[Call]:
    """Return the library calls of `Model.forward`."""
    return calls_of_task(module_names(parse(code)))


def _is_random(call: Call) -> bool:
    name = call.path.rpartition(".")[2].removesuffix("_")
    if name in _RANDOM:
        return True
    if name not in _TRAINING or call.layer is not None:
        return False
    position, default = _TRAINING[name]
    training = _argument(call, "training", position) or Constant(default)
    probability = _argument(call, "p", 1)
    return training != Constant(False) and probability not in (Constant(0), Constant(0.0))


def _argument(call: Call, name: str, position: int) -> Value | None:
    if name in call.keywords:
        return call.keywords[name]
    return call.arguments[position] if position < len(call.arguments) else None
