"""Ask every wanted source for its operators."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from ops_crawler.operator import Operator
from ops_crawler.torch_source import TorchSource


class Source(Protocol):
    """Something that yields operators; what cannot be inspected is left out or yielded as `unknown`."""

    def operators(self) -> Iterable[Operator]:
        """Yield operators in any order."""
        ...


class UnknownSource(ValueError):
    """A source was asked for that nobody provides. Raised by `crawl`; its text is one line for the user."""


SOURCES: dict[str, Source] = {"torch": TorchSource()}


def crawl(sources: Sequence[str] = ("torch",)) -> list[Operator]:
    """Return the operators of all sources sorted by name, each name once (the first source wins).

    Raises `UnknownSource`.
    """
    found: dict[str, Operator] = {}
    for name in sources:
        if name not in SOURCES:
            raise UnknownSource(f"no source is called {name!r}; known sources: {', '.join(sorted(SOURCES))}")
        for operator in SOURCES[name].operators():
            found.setdefault(operator.name, operator)
    return sorted(found.values(), key=lambda operator: operator.name)
