"""Is a task a benchmark task in disguise, or does it repeat another one of its set?

Facts (`similarity`, `similarities`; `filters.judging.similarity` judges them), repeats inside a set
(`duplicates`), and what can be read off source text alone (`static_ops` and its neighbours).
"""

from filters.similarity.duplicates import Repeat, Repeats, SetMember, duplicates
from filters.similarity.facts import Fingerprint, SimilarityFacts, fingerprint, similarities, similarity
from filters.similarity.reference import Reference, ReferenceFileError, load, shipped_reference
from filters.similarity.static_operators import (
    labels_absent_from_code,
    static_ops,
    static_random_calls,
    static_signature,
)

__all__ = [
    "Fingerprint",
    "Reference",
    "ReferenceFileError",
    "Repeat",
    "Repeats",
    "SetMember",
    "SimilarityFacts",
    "duplicates",
    "fingerprint",
    "labels_absent_from_code",
    "load",
    "shipped_reference",
    "similarities",
    "similarity",
    "static_ops",
    "static_random_calls",
    "static_signature",
]
