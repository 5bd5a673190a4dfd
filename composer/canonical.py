"""The canonical form of a task: what is left when names, sizes and decoration are taken away.

Two tasks with equal canonical form pose the same problem. The form covers what is reachable from
`Model`, `get_inputs` and `get_init_inputs`:

- comments, docstrings, annotations, asserts (also `if ...: raise`), `pass`, unused imports, unused
  definitions and unused methods are left out; local base classes are merged into their subclass;
- import aliases are spelled out (`F.relu` is `torch.nn.functional.relu`), literal constants of the
  module are put where they are used;
- local names, attributes of `self` and local definitions are numbered in the order of their first use;
- sizes become `size`: integers from the least that can hardly be anything else, see `SMALLEST_SIZE`.
  Rank, dtype, keywords and all other constants stay.

Code is parsed, never executed. Code that cannot be read raises `UnreadableCodeError`.
"""

import ast
import hashlib
from collections.abc import Iterator, Sequence

from composer.source_names import (
    Function,
    ModuleNames,
    UnreadableCodeError,
    bound_names,
    dotted_path,
    module_names,
    parse,
)

TASK = ("Model", "get_inputs", "get_init_inputs")
"""The names that a task must define; the roots of the canonical form."""

SMALLEST_SIZE = {"get_inputs": 0, "get_init_inputs": 3}
"""Integers from here up are sizes. In `get_inputs` all are; among the arguments of the constructor smaller
ones may be axes, strides or flags."""

_SMALLEST_SIZE_ELSEWHERE = 8
"""In the layer itself: integers below it may be axes, exponents or the sizes of small windows."""

_SIZE = "size"
_SKIPPED_FIELDS = {"ctx", "type_comment", "type_ignores", "type_params", "kind", "annotation", "returns"}


def canonical_form(code: str) -> str:
    """Return the canonical form as one line of nested parentheses. Raises `UnreadableCodeError`."""
    return " ".join(canonical_tokens(code))


def family_id(code: str) -> str:
    """Return the sha256 hex digest of the canonical form. Raises `UnreadableCodeError`."""
    return hashlib.sha256(canonical_form(code).encode("utf-8", "backslashreplace")).hexdigest()


def canonical_tokens(code: str, roots: Sequence[str] = TASK) -> tuple[str, ...]:
    """Return the canonical form as tokens: node types in pre-order with brackets, names and constants.

    `roots` are the definitions to start from; a root that the code lacks is left out.
    Raises `UnreadableCodeError`.
    """
    tree = parse(code)
    try:
        return tuple(_Canonicaliser(module_names(tree)).program(roots))
    except RecursionError as error:
        raise UnreadableCodeError("the code is nested too deeply to be analysed") from error


class _Canonicaliser:
    """Spells one program as tokens; numbers names as it meets them."""

    def __init__(self, names: ModuleNames) -> None:
        self.names = names
        self.tokens: list[str] = []
        self.reached: list[str] = []  # top-level definitions in the order of first use
        self.attributes: dict[str, int] = {}  # numbers of members of local classes
        self.mentioned: dict[str, None] = {}  # attribute names met so far, in order
        self.own: set[str] = set()  # members of the class being spelled
        self.locals: dict[str, int] = {}  # numbers of the names of the function being spelled
        self.local_names: set[str] = set()
        self.self_name: str | None = None
        self.smallest_size = _SMALLEST_SIZE_ELSEWHERE

    def program(self, roots: Sequence[str]) -> list[str]:
        self.reached = [root for root in roots if root in self.names.definitions]
        done: set[int] = set()
        for name in self.reached:  # grows while it is read
            self.smallest_size = SMALLEST_SIZE.get(name, _SMALLEST_SIZE_ELSEWHERE)
            for statement in self.names.definitions[name]:
                if id(statement) not in done:
                    done.add(id(statement))
                    self.spell(statement)
        return self.tokens

    def klass(self, node: ast.ClassDef) -> None:
        """Spell a class with the members of its local base classes; of the methods only those in use."""
        members, bases = self.merged(node)
        outer, self.own = self.own, set(members)
        self.own.update(name for statements in members.values() for name in _stored_attributes(statements))
        self.tokens.append("(class")
        for part in [*bases, *node.decorator_list]:
            self.spell(part)
        always = ["__init__", "forward", *sorted(name for name in members if name.startswith("__"))]
        if node.decorator_list:
            always += members
        waiting = dict(members)
        while wanted := [name for name in [*always, *self.mentioned] if name in waiting]:
            for statement in waiting.pop(wanted[0]):
                self.function(statement, True) if isinstance(statement, Function) else self.spell(statement)
        self.tokens.append(")")
        self.own = outer

    def merged(self, node: ast.ClassDef) -> tuple[dict[str, list[ast.stmt]], list[ast.expr]]:
        """Return members by name, and the bases that are not local."""
        members: dict[str, list[ast.stmt]] = {}
        foreign: list[ast.expr] = []
        for base in node.bases:
            local = self.names.definitions.get(base.id, []) if isinstance(base, ast.Name) else []
            if local and isinstance(local[0], ast.ClassDef):
                inherited, further = self.merged(local[0])
                members.update(inherited)
                foreign += further
            else:
                foreign.append(base)
        own: dict[str, list[ast.stmt]] = {}
        for statement in node.body:
            names = [statement.name] if isinstance(statement, Function) else bound_names(statement)
            for name in names[:1]:
                own.setdefault(name, []).append(statement)
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and _is_super(part.value) and part.attr in own:
                members[f"__super__{part.attr}"] = members.get(part.attr, [])
        return members | own, foreign

    def function(self, node: Function, is_method: bool = False) -> None:
        outer = (self.locals, self.local_names, self.self_name)
        if not self.local_names:  # names of nested functions are numbered with those of the outer one
            self.locals, self.local_names = {}, set(bound_names(node)) - _global_names(node)
        if is_method:
            arguments = [*node.args.posonlyargs, *node.args.args]
            self.self_name = arguments[0].arg if arguments else None
        self.tokens.append(f"(def {self.member(node.name) if is_method else self.name(node.name)}")
        for part in [*node.decorator_list, node.args]:
            self.spell(part)
        self.block(node.body)
        self.tokens.append(")")
        self.locals, self.local_names, self.self_name = outer

    def name(self, name: str) -> str:
        if name in self.local_names:
            return f"v{self.locals.setdefault(name, len(self.locals))}"
        if name in self.names.definitions:
            if name not in self.reached:
                self.reached.append(name)
            return f"d{self.reached.index(name)}"
        return self.names.imports.get(name, name)

    def member(self, name: str) -> str:
        """Return the number of a member of the class being spelled; foreign and special names as they are."""
        self.mentioned[name] = None
        if name not in self.own or name.startswith("__") or name == "forward":
            return name
        return f"a{self.attributes.setdefault(name, len(self.attributes))}"

    def spell(self, node: object) -> None:
        """Append the tokens of a field: a node, a list of nodes, a name or nothing."""
        if isinstance(node, list):
            self.block(node)
        elif isinstance(node, ast.AST):
            self.node(node)
        elif node is not None:
            self.tokens.append(repr(node))

    def block(self, nodes: Sequence[ast.AST]) -> None:
        if nodes:
            self.tokens.append("[")
            for node in nodes:
                self.spell(node)
                if isinstance(node, ast.Return | ast.Raise | ast.Break | ast.Continue):
                    break
            self.tokens.append("]")

    def node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Name) and self.is_constant(node.id):
            self.spell(self.names.constants[node.id])
        elif isinstance(node, ast.Name):
            in_class_body = bool(self.own) and not self.local_names and node.id in self.own
            self.tokens.append(self.member(node.id) if in_class_body else self.name(node.id))
        elif isinstance(node, ast.Attribute):
            self.dotted(node)
        elif isinstance(node, ast.Constant):
            self.tokens.append(self.constant(node.value))
        elif isinstance(node, ast.BinOp | ast.UnaryOp) and self.is_size(node):
            self.tokens.append(_SIZE)
        elif isinstance(node, ast.arg):
            self.tokens.append(self.name(node.arg))
        elif isinstance(node, ast.ClassDef):
            self.klass(node)
        elif isinstance(node, Function):
            self.function(node)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.fields("Assign", [[node.target], node.value])
        elif _is_super(node):
            self.tokens.append("super()")
        elif not _is_decoration(node):
            parts = [getattr(node, name, None) for name in node._fields if name not in _SKIPPED_FIELDS]
            self.fields(type(node).__name__, parts)

    def fields(self, kind: str, parts: Sequence[object]) -> None:
        self.tokens.append(f"({kind}")
        for part in parts:
            self.spell(part)
        self.tokens.append(")")

    def dotted(self, node: ast.Attribute) -> None:
        """Spell `alias.b.c` as one token `library.b.c`, `self.x` with its number, the rest as nodes."""
        path = dotted_path(node)
        if path and path[0] in self.names.imports and path[0] not in self.local_names:
            self.tokens.append(".".join([self.names.imports[path[0]], *path[1:]]))
            return
        own = isinstance(node.value, ast.Name) and node.value.id == self.self_name
        self.mentioned[node.attr] = None
        self.tokens.append(f"(. {self.member(node.attr) if own else node.attr}")
        self.spell(node.value)
        self.tokens.append(")")

    def constant(self, value: object) -> str:
        if type(value) is int and value >= self.smallest_size:
            return _SIZE
        return repr(value)

    def is_size(self, node: ast.expr) -> bool:
        """Whether a term is a size: made of integers of which at least one is a size."""
        leaves = list(self.leaves(node))
        return _SIZE in leaves and all(leaf == _SIZE or leaf.isdecimal() for leaf in leaves)

    def leaves(self, node: ast.expr) -> Iterator[str]:
        """Yield the constants of a term; an empty text for whatever else it is made of."""
        if isinstance(node, ast.Constant):
            yield self.constant(node.value)
        elif isinstance(node, ast.UnaryOp):
            yield from self.leaves(node.operand)
        elif isinstance(node, ast.BinOp):
            yield from self.leaves(node.left)
            yield from self.leaves(node.right)
        elif isinstance(node, ast.Name) and self.is_constant(node.id):
            yield from self.leaves(self.names.constants[node.id])
        else:
            yield ""

    def is_constant(self, name: str) -> bool:
        return name in self.names.constants and name not in self.local_names


def _stored_attributes(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names of the attributes that statements assign to."""
    for statement in statements:
        for part in ast.walk(statement):
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                yield part.attr


def _global_names(node: ast.AST) -> set[str]:
    return {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}


def _is_super(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _is_decoration(node: ast.AST) -> bool:
    """Whether a node says nothing about what is computed."""
    if isinstance(node, ast.If):
        return not node.orelse and all(isinstance(part, ast.Raise | ast.Assert) for part in node.body)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Assert | ast.Pass | ast.Import | ast.ImportFrom | ast.Global)
