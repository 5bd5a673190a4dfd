"""Ask every wanted source for its operators; a source that breaks is told of and stops no other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ops_crawler.catalogue import with_witnesses
from ops_crawler.folder_source import FolderSource
from ops_crawler.operator import Operator
from ops_crawler.own_code import clash
from ops_crawler.source import SourceError, one_line
from ops_crawler.sources import find_source


class NoOperatorsError(ValueError):
    """No source gave any operator. Raised by `survey`; its text is one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What the sources gave."""

    operators: tuple[Operator, ...]
    """Sorted by name, each name once; the first source wins."""
    problems: tuple[str, ...] = ()
    """One line for every source, file or own operator that is left out or that no layer is built from."""


def crawl(sources: Sequence[str] = ("torch",)) -> list[Operator]:
    """Return the operators of all sources, those that are set aside too. Raises `NoOperatorsError`."""
    return list(survey(sources).operators)


def survey(sources: Sequence[str]) -> Survey:
    """Return the operators of all sources and what went wrong. Raises `NoOperatorsError`."""
    found: dict[str, Operator] = {}
    problems: list[str] = []
    for name in dict.fromkeys(sources):
        operators, its_problems = _asked(name)
        its_problems += [f"{operator.name}: {operator.detail}" for operator in operators if operator.detail]
        for operator in operators:
            if operator.name in found:
                first = found[operator.name].source
                its_problems.append(f"{operator.name} is already there from source {first}; left out")
            else:
                found[operator.name] = _without_clash(operator, found.values(), its_problems)
        problems += [f"source {name}: {problem}" for problem in its_problems]
    if not found:
        raise NoOperatorsError("no operators: " + ("; ".join(problems) or "no source gave any"))
    return Survey(
        operators=tuple(sorted(found.values(), key=lambda operator: operator.name)), problems=tuple(problems)
    )


def _asked(name: str) -> tuple[list[Operator], list[str]]:
    """Return the operators of one source and its problems."""
    operators: list[Operator] = []
    try:
        source = find_source(name)
    except SourceError as error:
        return operators, [str(error)]
    problems: list[str] = []
    place = source.folder.name if isinstance(source, FolderSource) else name  # no path of the user's own
    try:
        for operator in source.operators():
            if isinstance(operator, Operator):
                operators.append(replace(operator, source=place))
            else:
                problems.append(f"yields a {type(operator).__name__} where an Operator is due; left out")
    except (Exception, SystemExit) as error:  # whatever the user's own code raises
        problems.append(f"after {len(operators)} operators: {one_line(error)}")
    if isinstance(source, FolderSource):
        problems = source.problems + problems
    return with_witnesses(operators) if name == "torch" else operators, problems


def _without_clash(operator: Operator, others: Iterable[Operator], problems: list[str]) -> Operator:
    """Set an own operator aside where its text cannot stand beside that of another in one task."""
    if operator.usage is None:
        return operator
    for other in others:
        name = clash(operator.usage.code, other.usage.code) if other.usage else None
        if name:
            detail = f"defines {name}, which {other.name} defines otherwise; call one of them otherwise"
            problems.append(f"{operator.name}: {detail}")
            return replace(operator, usage=None, set_aside="no_plain_source", detail=detail)
    return operator
