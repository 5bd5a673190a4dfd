"""What a source is."""

from collections.abc import Iterable
from typing import Protocol

from ops_crawler.operator import Operator


class Source(Protocol):
    """Something that yields operators. Whatever it raises is told to the user and stops no other source."""

    def operators(self) -> Iterable[Operator]:
        """Yield operators in any order."""
        ...


class SourceError(ValueError):
    """A source cannot be found or loaded. The message is one line."""


def one_line(error: BaseException) -> str:
    """Return kind and text of an error on one line."""
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
