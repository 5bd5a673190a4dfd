"""The rules of the composer, a table per family. A new operator is a few lines in one of them."""

from composer.rules import binary, convolution, elementwise, linear, normalisation, reduction
from composer.rules.rule import Call, Rule

RULES: tuple[Rule, ...] = (
    *elementwise.RULES,
    *binary.RULES,
    *linear.RULES,
    *convolution.RULES,
    *normalisation.RULES,
    *reduction.RULES,
)

__all__ = ["RULES", "Call", "Rule"]
