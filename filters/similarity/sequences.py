"""Instrument 3: similarity of two models' syntax with the operators kept.

The sequence of a program is its canonical form from `Model` on (base classes and helpers followed; names
numbered; sizes, docstrings, annotations and asserts gone), brackets left out, paths of torch in canonical
spelling. Similarity is 2 * longest common subsequence / sum of the lengths (normalised Indel).
"""

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz import process
from rapidfuzz.distance import Indel

from composer.canonical import canonical_tokens
from filters.operators import canonical_name

_BRACKETS = frozenset("()[]")

Encoded = Sequence[int]
"""One number for each token; equal tokens have equal numbers in every program and process."""


def operator_sequence(code: str) -> tuple[int, ...]:
    """Return the encoded sequence of what is reachable from `Model`. Raises `UnreadableCodeError`."""
    tokens = canonical_tokens(code, roots=("Model",))
    return tuple(_number(token) for token in tokens if token not in _BRACKETS)


def _number(token: str) -> int:
    if token.startswith("torch."):
        token = canonical_name(token) or token
    return zlib.crc32(token.encode("utf-8", "backslashreplace"))


def operator_similarities(
    left: Sequence[Encoded], right: Sequence[Encoded], cutoff: float | None = None
) -> NDArray[np.float32]:
    """Return the similarity, 0 to 1, of every sequence to every other; below `cutoff` 0 stands instead."""
    return process.cdist(
        left, right, scorer=Indel.normalized_similarity, score_cutoff=cutoff, dtype=np.float32, workers=1
    )
