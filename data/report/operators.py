"""What a row says of its operators, as the charts count it."""

from itertools import pairwise

from data.labels import categories
from data.report.sets import ReportRow

_PREFIXES = (("torch.nn.functional.", "F."), ("torch.nn.", "nn."), ("torch.", ""))


def arity(row: ReportRow) -> tuple[str, ...]:
    """Return the column of the paper's table 3 that a row belongs to, nothing where it is not known."""
    if row.whole_layer:
        return ("transformers",)
    return (str(len(row.ops)),) if row.ops else ()


def composed_ops(row: ReportRow) -> tuple[str, ...]:
    """Return the operators of a composed layer, shortened as code imports them."""
    return () if row.whole_layer else tuple(short_name(name) for name in row.ops)


def pairs(row: ReportRow) -> tuple[str, ...]:
    """Return which operator follows which in a composed layer."""
    return tuple(f"{first} → {second}" for first, second in pairwise(composed_ops(row)))


def short_name(operator: str) -> str:
    """Return an operator's name as code imports it: `nn.Conv2d`, `F.gelu`, `cumsum`."""
    for prefix, short in _PREFIXES:
        if operator.startswith(prefix):
            return short + operator.removeprefix(prefix)
    return operator


def kinds(row: ReportRow) -> tuple[str, ...]:
    """Return the kinds of the operators of a composed layer."""
    return () if row.whole_layer else categories(row.ops)
