"""The rules of the composer, a table per family. A new operator is a few lines in one of them."""

from collections.abc import Mapping
from types import MappingProxyType

from composer.rules import (
    activations,
    attention,
    binary,
    convolution,
    indexing,
    linear,
    losses,
    mathematics,
    matrices,
    normalisation,
    padding,
    pooling,
    recurrent,
    reduction,
    resampling,
    spectral,
)
from composer.rules.rule import Call, Rule

FAMILIES: Mapping[str, tuple[Rule, ...]] = MappingProxyType(
    {
        "activation": activations.RULES,
        "attention": attention.RULES,
        "binary": binary.RULES,
        "convolution": convolution.RULES,
        "embedding": indexing.EMBEDDING_RULES,
        "indexing": indexing.RULES,
        "linear": linear.RULES,
        "loss": losses.RULES,
        "mathematics": mathematics.RULES,
        "matrices": matrices.RULES,
        "normalisation": normalisation.RULES,
        "padding": padding.RULES,
        "pooling": pooling.RULES,
        "recurrent": recurrent.RULES,
        "reduction": reduction.RULES,
        "resampling": resampling.RULES,
        "spectral": spectral.RULES,
    }
)

RULES: tuple[Rule, ...] = tuple(rule for family in FAMILIES.values() for rule in family)

__all__ = ["FAMILIES", "RULES", "Call", "Rule"]
