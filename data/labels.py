"""What a row is called: source, categories, difficulty and split, all derived from what ran."""

import hashlib
import json
from collections.abc import Sequence

from ops_crawler.categories import category

VALIDATION_SHARE = 0.05
"""Share of the operator sets that goes to the validation split."""
SPLIT_FROM_ROWS = 1000
"""Below this number of rows a dataset has only the split train."""
COMPUTE_BOUND_INTENSITY = 10
"""FLOP per byte from which a task counts as bound by arithmetic: about the ratio of fp32 peak to memory
bandwidth of current data-centre GPUs (H200: 67 TFLOP/s and 4.8 TB/s, so 14)."""


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
