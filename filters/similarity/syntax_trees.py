"""Instrument 1: the paper's AST similarity, `PythonASTSimilarity` of the package continuous-eval.

Only node types and their arrangement count. The definition, after arXiv 2602.24286 (appendix A) and the
behaviour of that package (Apache-2.0; derived from python-ast-comparison, MIT):

- the *significant* subtrees of a program are those whose root has one of the types of `WEIGHTS`;
- two nodes match if their types and numbers of children agree; a match counts 1 plus the best one-to-one
  assignment of the children, so a subtree is worth at most its number of nodes, and a docstring more or
  less in a body makes the whole function worth 0;
- the significant subtrees of two programs are assigned to each other likewise, each pair weighted by its
  type; score = 2 * weighted matches / weighted sizes of both sides, rounded to four decimals;
- a program with fewer than two significant subtrees scores 0.

Pairs of different types are worth 0, so the assignment falls apart into blocks of equal type and number
of children. Subtrees are hash-consed: equal ones have equal numbers and match completely.
"""

import ast
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

WEIGHTS = {
    "Import": 0.3,
    "FunctionDef": 1.2,
    "If": 0.5,
    "ClassDef": 1.0,
    "While": 1.0,
    "For": 1.0,
    "comprehension": 1.0,
    "Return": 1.0,
}
"""Types of significant subtrees and what one node of them weighs."""

Kind = tuple[str, int]
"""Node type and number of children."""


@dataclass
class Forest:
    """Hash-consed subtrees; a number stands for a subtree. Grows on `plant`, otherwise unchanged."""

    kinds: list[Kind] = field(default_factory=list)
    children: list[tuple[int, ...]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Number of nodes of each subtree."""
    numbers: dict[tuple[str, tuple[int, ...]], int] = field(default_factory=dict)

    def add(self, type_name: str, children: tuple[int, ...]) -> int:
        """Return the number of a subtree given by its root's type and its children's numbers."""
        key = (type_name, children)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.kinds)
            self.kinds.append((type_name, len(children)))
            self.children.append(children)
            self.sizes.append(1 + sum(self.sizes[child] for child in children))
        return number

    def plant(self, tree: ast.AST) -> "Program":
        """Return the significant subtrees of a syntax tree. RecursionError where it is nested too deeply."""
        significant: list[int] = []

        def grow(node: ast.AST) -> int:
            number = self.add(type(node).__name__, tuple([grow(part) for part in ast.iter_child_nodes(node)]))
            if type(node).__name__ in WEIGHTS:
                significant.append(number)
            return number

        grow(tree)
        return Program(self, tuple(significant))

    def prune(self, size: int) -> None:
        """Forget all subtrees but the first `size`."""
        while len(self.kinds) > size:
            type_name, _ = self.kinds.pop()
            del self.numbers[type_name, self.children.pop()]
            self.sizes.pop()


@dataclass(frozen=True)
class Program:
    """The significant subtrees of one program."""

    forest: Forest
    significant: tuple[int, ...]

    @cached_property
    def weight(self) -> float:
        """Weighted number of nodes of all significant subtrees."""
        kinds, sizes = self.forest.kinds, self.forest.sizes
        return sum(WEIGHTS[kinds[number][0]] * sizes[number] for number in self.significant)

    @cached_property
    def profile(self) -> dict[tuple[Kind, Kind], float]:
        """Weighted number of nodes by kind of the significant subtree's root and kind of the node.

        What two programs have in common of these numbers bounds their weighted matches.
        """
        counts: dict[tuple[Kind, Kind], float] = defaultdict(float)
        kinds, children = self.forest.kinds, self.forest.children
        for number in self.significant:
            root = kinds[number]
            waiting = [number]
            while waiting:
                part = waiting.pop()
                counts[root, kinds[part]] += WEIGHTS[root[0]]
                waiting += children[part]
        return dict(counts)


def model_class(tree: ast.Module) -> ast.Module:
    """Return the class `Model` alone, as the paper compares it; an empty module where there is none."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
    return ast.Module(body=list(classes[-1:]), type_ignores=[])


def ast_similarity(left: Program, right: Program, matches: "Matches | None" = None) -> float:
    """Return the similarity, 0 to 1, of two programs of one forest."""
    if len(left.significant) < 2 or len(right.significant) < 2:
        return 0.0
    matches = matches or Matches(left.forest)
    weighted = 0.0
    for kind, (rows, columns) in matches.blocks(left.significant, right.significant).items():
        weighted += WEIGHTS[kind[0]] * matches.assigned(rows, columns)
    return round(2 * weighted / (left.weight + right.weight), 4)


class Matches:
    """Numbers of matching nodes of pairs of subtrees of one forest, each worked out once."""

    def __init__(self, forest: Forest) -> None:
        self.forest = forest
        self.known: dict[tuple[int, int], int] = {}

    def of(self, left: int, right: int) -> int:
        """Return how many nodes of two subtrees of one kind match at best."""
        if left == right:
            return self.forest.sizes[left]
        known = self.known.get((left, right))
        if known is None:
            known = 1
            for rows, columns in self.blocks(
                self.forest.children[left], self.forest.children[right]
            ).values():
                known += self.assigned(rows, columns)
            self.known[left, right] = known
        return known

    def blocks(self, left: Iterable[int], right: Iterable[int]) -> dict[Kind, tuple[list[int], list[int]]]:
        """Return the subtrees of both sides by kind, kinds of one side only left out."""
        kinds = self.forest.kinds
        columns = defaultdict(list)
        for number in right:
            columns[kinds[number]].append(number)
        blocks: dict[Kind, tuple[list[int], list[int]]] = {}
        for number in left:
            kind = kinds[number]
            if kind in columns:
                blocks.setdefault(kind, ([], columns[kind]))[0].append(number)
        return blocks

    def assigned(self, rows: list[int], columns: list[int]) -> int:
        """Return the matching nodes of the best one-to-one assignment inside a block."""
        if len(rows) == 1 or len(columns) == 1:
            return max(self.of(row, column) for row in rows for column in columns)
        # Equal subtrees may always be assigned to each other: matches compose, so a detour never gains.
        equal, rows, columns = _without_common(rows, columns)
        total = sum(self.forest.sizes[number] for number in equal)
        if not rows or not columns:
            return total
        if len(rows) == 1 or len(columns) == 1:
            return total + max(self.of(row, column) for row in rows for column in columns)
        return total + best_assignment([[self.of(row, column) for column in columns] for row in rows])


def _without_common(left: list[int], right: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return what two bags have in common, and what remains of each."""
    rest = list(right)
    common, remaining = [], []
    for number in left:
        if number in rest:
            rest.remove(number)
            common.append(number)
        else:
            remaining.append(number)
    return common, remaining, rest


def best_assignment(worth: Sequence[Sequence[int]]) -> int:
    """Return the largest sum of entries with at most one in each row and column (Hungarian method)."""
    if len(worth) > len(worth[0]):
        worth = list(zip(*worth, strict=True))
    rows, columns = len(worth), len(worth[0])
    row_price = [0] * (rows + 1)
    column_price = [0] * (columns + 1)
    row_of = [0] * (columns + 1)  # row assigned to each column, 0 for none; both count from 1
    for row in range(1, rows + 1):
        row_of[0] = row
        column = 0
        slack: list[float] = [float("inf")] * (columns + 1)
        came_from = [0] * (columns + 1)
        visited = [False] * (columns + 1)
        while row_of[column]:
            visited[column] = True
            at, step, nearest = row_of[column], float("inf"), 0
            for j in range(1, columns + 1):
                if not visited[j]:
                    cost = -worth[at - 1][j - 1] - row_price[at] - column_price[j]
                    if cost < slack[j]:
                        slack[j], came_from[j] = cost, column
                    if slack[j] < step:
                        step, nearest = slack[j], j
            for j in range(columns + 1):
                if visited[j]:
                    row_price[row_of[j]] += int(step)
                    column_price[j] -= int(step)
                else:
                    slack[j] -= step
            column = nearest
        while column:
            row_of[column] = row_of[came_from[column]]
            column = came_from[column]
    return sum(worth[row_of[j] - 1][j - 1] for j in range(1, columns + 1) if row_of[j])
