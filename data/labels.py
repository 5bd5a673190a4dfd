"""What a row is called: source, categories, difficulty and split, all derived from what ran."""

import hashlib
import json
import re
from collections.abc import Sequence

VALIDATION_SHARE = 0.05
"""Share of the operator sets that goes to the validation split."""
SPLIT_FROM_ROWS = 1000
"""Below this number of rows a dataset has only the split train."""
COMPUTE_BOUND_INTENSITY = 10
"""FLOP per byte from which a task counts as bound by arithmetic: about the ratio of fp32 peak to memory
bandwidth of current data-centre GPUs (H200: 67 TFLOP/s and 4.8 TB/s, so 14)."""

_CATEGORIES = (
    ("attention", r"attention|transformer"),
    ("recurrent", r"(rnn|lstm|gru)(cell|tanh|relu)?$"),
    ("convolution", r"conv"),
    ("pooling", r"pool"),
    ("loss", r"loss|entropy|kl_div"),
    ("embedding", r"embedding"),
    ("resampling", r"interpolate|upsampl|shuffle|grid"),
    ("padding", r"pad([123]d|_nd)?$"),
    ("fft", r"\bfft\b|stft"),
    ("distance", r"cosine|distance|dist$"),
    ("scan", r"cum(sum|prod|max|min|sumexp)|trapezoid|\bdiff$"),
    (
        "reduction",
        r"\b(nan)?(sum|mean|prod|std|var|max|min|amax|amin|aminmax|argmax|argmin|all|any|(nan)?median|mode|norm|"
        r"(vector|matrix)_norm|(std|var)_mean|logsumexp|count_nonzero|(nan)?quantile|trace|histc|bincount)$",
    ),
    ("normalization", r"norm|lrn"),
    (
        "linear algebra",
        r"\blinalg\b|matmul|\b(add|baddb|b|addb)?mm$|\b(add)?mv$|\b(add|chain_|multi_)?(bmm|matmul|multi_dot)$|"
        r"linear$|einsum|tensordot|\b(v|inner|outer|kron|cross|dot|vdot|addr|inv|det|logdet|cholesky\w*)$",
    ),
    ("sorting", r"sort$|topk$|kthvalue$|unique|searchsorted|bucketize"),
    ("indexing", r"gather|scatter|index_|take|masked_(select|scatter)|one_hot"),
    ("rearrangement", r"\b\w*(cat|stack|roll|flip\w*|rot90|repeat\w*|tile|fold|tri[lu]|diag\w*)$|block_diag"),
    (
        "activation",
        r"(re|ge|si|e|ce|se|pre|g|r)lu6?$|relu|softm(ax|in)|sigmoid|tanh|mish|hardswish|softplus|softsign|"
        r"shrink|threshold$",
    ),
)
"""First pattern found in the lower-case canonical name wins; what none fits is elementwise arithmetic."""


def category(operator: str) -> str:
    """Return the kind of one operator by its canonical name."""
    name = operator.lower()
    return next((kind for kind, pattern in _CATEGORIES if re.search(pattern, name)), "elementwise")


def categories(operators: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct kinds of some operators, sorted."""
    return tuple(sorted({category(operator) for operator in operators}))


def difficulty(op_count: int, flops: int | None, bytes_moved: int | None) -> str:
    """Return `easy`, `medium` or `hard`.

    Points: one for each operator after the first, because each asks for a fusion; two more where the task
    is bound by arithmetic, because then a kernel must compete with tuned libraries. Up to 1 point is easy,
    2 and 3 are medium, 4 or more are hard.
    """
    compute_bound = flops and bytes_moved and flops >= COMPUTE_BOUND_INTENSITY * bytes_moved
    points = op_count - 1 + (2 if compute_bound else 0)
    return "easy" if points <= 1 else "medium" if points <= 3 else "hard"


def split_of(operators: Sequence[str], row_count: int) -> str:
    """Return the split of a row in a dataset of `row_count` rows.

    It depends on the set of operators alone, so that no set is on both sides and none changes sides when
    the dataset grows.
    """
    if row_count < SPLIT_FROM_ROWS:
        return "train"
    digest = hashlib.sha256(json.dumps(sorted(set(operators))).encode()).digest()
    return "validation" if int.from_bytes(digest[:4]) < VALIDATION_SHARE * 2**32 else "train"
