"""KernelBench as fingerprints: what the instruments compare with, without a line of its source text.

The file is built by `python -m filters.similarity.build`; see there for how. Each of the 270 tasks has its
significant subtrees (instrument 1), its ordered signatures, executed and static (2), and its encoded
operator sequence (3).
"""

import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from filters.operators import computes, without_rank
from filters.similarity.syntax_trees import Forest, Kind, Program

SHIPPED = Path(__file__).with_name("kernelbench.json.gz")
_SHORT = 150
"""Tokens; 239 of the 270 tasks have fewer, the longest 2,300: half of the comparison's work."""
FORMAT = 1
"""Version of the file's layout; a file of another version has to be built again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The fingerprint of one task."""

    name: str
    """Such as `level1/19_ReLU`."""
    significant: tuple[int, ...]
    """Numbers of the significant subtrees of class `Model`, in the reference's forest."""
    signature: tuple[str, ...]
    """As executed; as read from the source where the task cannot run on fake tensors."""
    static_signature: tuple[str, ...]
    sequence: tuple[int, ...]


class ReferenceFileError(ValueError):
    """The fingerprint file is missing or of another version; the message says how to build it."""


@dataclass(frozen=True)
class Reference:
    """The fingerprints of a benchmark, ready for comparison."""

    tasks: tuple[Task, ...]
    forest: Forest
    about: dict[str, Any] = field(default_factory=dict)
    """Where the tasks come from: repository, commit, licence, versions."""

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        return tuple(Program(self.forest, task.significant) for task in self.tasks)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weighted sizes of the tasks."""
        return np.array([program.weight for program in self.programs])

    @cached_property
    def profile_columns(self) -> dict[tuple[Kind, Kind], int]:
        """Column of `profiles` for each key of a program's profile."""
        keys = {key for program in self.programs for key in program.profile}
        return {key: column for column, key in enumerate(sorted(keys))}

    @cached_property
    def profiles(self) -> NDArray[np.float64]:
        """Weighted numbers of nodes by kind, one row for each task."""
        profiles = np.zeros((len(self.programs), len(self.profile_columns)))
        for row, program in enumerate(self.programs):
            for key, weight in program.profile.items():
                profiles[row, self.profile_columns[key]] = weight
        return profiles

    @cached_property
    def sequences(self) -> list[list[int]]:
        return [list(task.sequence) for task in self.tasks]

    @cached_property
    def short_and_long(self) -> tuple[list[int], list[int]]:
        """Places of the tasks whose sequences are short, and of those that cost time to compare."""
        places = range(len(self.tasks))
        short = [place for place in places if len(self.sequences[place]) <= _SHORT]
        return short, [place for place in places if len(self.sequences[place]) > _SHORT]

    def same_signature(self, signature: Sequence[str], *, executed: bool) -> str | None:
        """Return the first task with an equal ordered signature, None also for an empty one.

        An element that does not tell its rank (`F.batch_norm`) equals those that do (`nn.BatchNorm2d`).
        """
        exact, rankless = self._by_signature[executed]
        found = exact.get(tuple(signature))
        if found is None and not _RANKLESS.isdisjoint(signature):
            found = rankless.get(tuple(map(without_rank, signature)))
        return self.tasks[found].name if found is not None else None

    def same_operators(self, signature: Sequence[str], *, executed: bool) -> list[int]:
        """Return the places of the tasks whose operators that do work are the same, in any order."""
        return self._by_operators[executed].get(operators_at_work(signature), [])

    @cached_property
    def _by_signature(self) -> dict[bool, tuple[dict[tuple[str, ...], int], dict[tuple[str, ...], int]]]:
        index = {}
        for executed in (False, True):
            exact: dict[tuple[str, ...], int] = {}
            rankless: dict[tuple[str, ...], int] = {}
            for place, task in enumerate(self.tasks):
                signature = task.signature if executed else task.static_signature
                if signature:
                    exact.setdefault(signature, place)
                    rankless.setdefault(tuple(map(without_rank, signature)), place)
            index[executed] = (exact, rankless)
        return index

    @cached_property
    def _by_operators(self) -> dict[bool, dict[tuple[str, ...], list[int]]]:
        index: dict[bool, dict[tuple[str, ...], list[int]]] = {False: {}, True: {}}
        for place, task in enumerate(self.tasks):
            for executed, signature in ((False, task.static_signature), (True, task.signature)):
                if operators := operators_at_work(signature):
                    index[executed].setdefault(operators, []).append(place)
        return index


_RANKLESS = frozenset({"batchnorm", "instancenorm"})


def operators_at_work(signature: Sequence[str]) -> tuple[str, ...]:
    """Return the elements of a signature that do work, sorted: the multiset that instrument 3 compares."""
    return tuple(sorted(without_rank(element) for element in signature if computes(element)))


@cache
def shipped_reference() -> Reference:
    """Return KernelBench as it is shipped with this package. Raises `ReferenceFileError`."""
    return load(SHIPPED)


def load(path: Path) -> Reference:
    """Read a fingerprint file. Raises `ReferenceFileError`."""
    how = "build it with `python -m filters.similarity.build CHECKOUT`"
    try:
        content = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, EOFError, ValueError) as error:
        raise ReferenceFileError(f"{path.name} cannot be read ({error}); {how}") from error
    if content.get("format") != FORMAT:
        raise ReferenceFileError(f"{path.name} has format {content.get('format')}, not {FORMAT}; {how}")
    forest = Forest()
    for type_number, *children in content["nodes"]:
        forest.add(content["types"][type_number], tuple(children))
    tasks = tuple(
        Task(
            name=task["name"],
            significant=tuple(task["significant"]),
            signature=tuple(task["signature"]),
            static_signature=tuple(task.get("static_signature", task["signature"])),
            sequence=tuple(task["sequence"]),
        )
        for task in content["tasks"]
    )
    return Reference(tasks, forest, content["about"])


def save(reference: Reference, path: Path) -> None:
    """Write a fingerprint file, byte for byte the same for the same content."""
    types = sorted({type_name for type_name, _ in reference.forest.kinds})
    tasks = []
    for task in reference.tasks:
        fields = asdict(task)
        if task.static_signature == task.signature:
            del fields["static_signature"]
        tasks.append(fields)
    nodes = [
        [types.index(kind[0]), *children]
        for kind, children in zip(reference.forest.kinds, reference.forest.children, strict=True)
    ]
    content = {"format": FORMAT, "about": reference.about, "types": types, "nodes": nodes, "tasks": tasks}
    text = json.dumps(content, separators=(",", ":"), sort_keys=True)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
