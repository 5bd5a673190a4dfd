"""What a row is called: source, categories, difficulty and split, all derived from what ran."""

import hashlib
import json
from collections.abc import Sequence

from ops_crawler.categories import category

VALIDATION_SHARE = 0.05
"""Share of the operator sets that goes to the validation split."""
SPLIT_FROM_ROWS = 1000
"""Below this number of rows a dataset has only the split train."""


def categories(operators: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct kinds of some operators, sorted."""
    return tuple(sorted({category(operator) for operator in operators}))


CATEGORY_POINTS = {
    "reduction": 1, "normalization": 1, "pooling": 1, "loss": 1, "distance": 1, "indexing": 1,
    "resampling": 1,
    "convolution": 2, "linear algebra": 2, "scan": 2, "sorting": 2, "fft": 2,
    "attention": 3, "recurrent": 3,
}  # fmt: skip
"""How much harder a kernel is than an element-wise one: 1 where threads must work together or reads are
scattered, 2 where it competes with tuned libraries or needs an algorithm of its own, 3 where it is several
such kernels."""
LONG_LAYERS = (20, 100)
"""Aten calls from which a layer is worth one point more each."""


def difficulty(operators: Sequence[str], aten_nodes: int | None) -> str:
    """Return `easy`, `medium` or `hard`, from what ran alone, whoever wrote the task.

    Points: one for each operator after the first, because each asks for a fusion; `CATEGORY_POINTS` of each
    distinct category; one more at each of `LONG_LAYERS`. Up to 1 point is easy, 2 and 3 are medium, 4 or more
    are hard. More operators, categories or aten calls never make a task easier.
    """
    points = max(len(operators) - 1, 0)
    points += sum(CATEGORY_POINTS.get(kind, 0) for kind in categories(operators))
    points += sum((aten_nodes or 0) >= calls for calls in LONG_LAYERS)
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
