"""Small pure functions from facts to one reason; importing the room registers them all."""

from filters.judging import (
    build,
    compiled,
    conduct,
    degenerate,
    labels,
    output,
    repeatability,
    runtime,
    similarity,
)
from filters.judging.registry import FILTERS, first_finding, missing_facts

__all__ = [
    "FILTERS",
    "build",
    "compiled",
    "conduct",
    "degenerate",
    "first_finding",
    "labels",
    "missing_facts",
    "output",
    "repeatability",
    "runtime",
    "similarity",
]
