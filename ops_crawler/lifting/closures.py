"""The closure of a layer class: every definition of the library that its text needs, dependencies first."""

import ast
import builtins
import hashlib
import re
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from ops_crawler.lifting.cleaning import ROPE_TABLE, cleaned, last_name
from ops_crawler.lifting.library import PACKAGE, Definition, LibraryFile, modeling_modules, read
from ops_crawler.lifting.reasons import NotLiftedError

ACTIVATIONS = frozenset({"ACT2FN", "ACT2CLS"})
"""The tables of activations and of their classes; bound when the configuration is known."""
_MODULES = frozenset("torch math typing collections dataclasses functools".split())
_MODULE_BASES = re.compile(r"^(torch\.)?nn\.\w+$")
_LIBRARY_PARTS = frozenset(
    """PreTrainedModel PreTrainedConfig PretrainedConfig GenerationMixin Cache DynamicCache
    EncoderDecoderCache StaticCache ALL_ATTENTION_FUNCTIONS AutoModel AutoConfig AutoBackbone
    ALL_LAYERNORM_LAYERS""".split()
)
_RECORD = "ModelOutput"
"""Base of the library's records, which become named tuples."""
_OURS: dict[str, tuple[str, str | None]] = {
    "namedtuple": ("collections", "namedtuple"),
    "math": ("math", None),
}
"""What cleaned definitions need besides what their files import."""
_IN_TORCH: dict[tuple[str, str | None], tuple[str, str | None]] = {
    (PACKAGE, "initialization"): ("torch.nn", "init")
}
"""Parts of the library that wrap a part of torch."""
_DEFINITIONS_MAX = 60
"""Definitions of one closure; what needs more is a model, not a layer."""


@dataclass(frozen=True)
class Closure:
    """All that one class needs of the library."""

    module: str
    name: str
    """Of the class."""
    definitions: tuple[tuple[str, str], ...]
    """Module and name, in an order in which they can be defined; the class comes last."""
    imports: dict[str, tuple[str, str | None]]
    """Names from outside the library: module, and the name in it."""
    tables: frozenset[str]
    """Helpers that are bound once the configuration is known."""
    missing: dict[str, NotLiftedError]
    """Names that no task can have, and why. Most stand in branches that a known configuration never takes."""

    def trees(self) -> Iterator[tuple[str, Definition]]:
        """Yield name and syntax tree of the definitions."""
        for module, name in self.definitions:
            yield name, _definition(module, name)

    def copyright_of(self, text: str) -> tuple[str, ...]:
        """Return the copyright lines of all files that a text of this closure has definitions from."""
        standing = set(_top_level_names(ast.parse(text)))
        homes = [module for module, name in self.definitions if name in standing]
        lines = (line for module in [self.module, *homes] for line in _file(module).copyright)
        return tuple(dict.fromkeys(lines))

    def also(self, module: str, name: str) -> "Closure":
        """Return the closure with one more definition, and all that it needs, in front."""
        return _closure(self.module, self.name, (module, name), (self.module, self.name))

    @cached_property
    def digest(self) -> str:
        """sha256 of the text with its definitions' names numbered: equal for one text under two names."""
        numbers = {name: f"d{number}" for number, (_, name) in enumerate(self.definitions)}
        text = "\n".join(_text(*definition) for definition in self.definitions)
        words = re.compile(r"\b(?:" + "|".join(map(re.escape, numbers)) + r")\b")
        imports = sorted(f"{name}={module}.{what}" for name, (module, what) in self.imports.items())
        canonical = "\n".join([words.sub(lambda found: numbers[found[0]], text), *imports])
        return hashlib.sha256(canonical.encode()).hexdigest()


def layer_classes(module: str) -> list[str]:
    """Return the classes of a modeling module that are layers: modules of torch, but no whole models."""
    file = read(module)
    if file is None:
        return []
    names = (name for name, node in file.definitions.items() if isinstance(node, ast.ClassDef))
    return [name for name in names if _kind(module, name) == "layer"]


def all_layer_classes() -> Iterator[tuple[str, str]]:
    """Yield module and name of every layer class of the library."""
    for module in modeling_modules():
        for name in layer_classes(module):
            yield module, name


def closure_of(module: str, name: str) -> Closure:
    """Return the closure of a class. Raises `NotLiftedError`."""
    return _closure(module, name, (module, name))


def _closure(module: str, name: str, *wanted: tuple[str, str]) -> Closure:
    found = _Search()
    for definition in wanted:
        found.add(*definition)
    return Closure(
        module, name, tuple(found.done), found.imports, frozenset(found.tables), dict(found.missing)
    )


class _Search:
    """Walks from a class to all that it needs, dependencies first."""

    def __init__(self) -> None:
        self.done: dict[tuple[str, str], None] = {}
        self.open: set[tuple[str, str]] = set()
        self.owners: dict[str, str] = {}
        self.imports: dict[str, tuple[str, str | None]] = {}
        self.tables: set[str] = set()
        self.missing: dict[str, NotLiftedError] = {}

    def add(self, module: str, name: str) -> None:
        if (module, name) in self.done or (module, name) in self.open:
            return
        if self.owners.setdefault(name, module) != module or name in self.imports:
            raise NotLiftedError("library_part", f"two definitions are called {name}")
        if len(self.open) + len(self.done) >= _DEFINITIONS_MAX:
            raise NotLiftedError("library_part", f"more than {_DEFINITIONS_MAX} definitions")
        if _file(module).has_other_license:
            raise NotLiftedError("other_license", module)
        node = _definition(module, name)
        if isinstance(node, ast.ClassDef) and _kind(module, name) == "model":
            raise NotLiftedError("base_model", name)
        self.open.add((module, name))
        for needed in _free_names(module, name):
            try:
                self.resolve(module, needed)
            except NotLiftedError as error:
                self.missing.setdefault(needed, error)
        self.open.discard((module, name))
        self.done[module, name] = None

    def resolve(self, module: str, name: str) -> None:
        if name in ACTIVATIONS or name == ROPE_TABLE:
            self.tables.add(name)
            return
        if name in _LIBRARY_PARTS:
            raise NotLiftedError("library_part", name)
        file = _file(module)
        if name in file.definitions:
            self.add(module, name)
        elif name in file.imports:
            self.outside(name, *file.imports[name])
        elif name in _OURS:
            self.outside(name, *_OURS[name])
        elif not hasattr(builtins, name):
            raise NotLiftedError("library_part", f"{name} is defined conditionally")

    def outside(self, bound: str, module: str, name: str | None) -> None:
        module, name = _IN_TORCH.get((module, name), (module, name))
        root = module.partition(".")[0]
        if root in _MODULES:
            if self.imports.setdefault(bound, (module, name)) != (module, name) or bound in self.owners:
                raise NotLiftedError("library_part", f"{bound} is imported in two ways")
        elif root != PACKAGE:
            raise NotLiftedError("foreign_import", root)
        elif name is None:
            raise NotLiftedError("library_part", module)
        else:
            home, original = _home(module, name)
            if original != bound:
                raise NotLiftedError("library_part", f"{original} under another name")
            self.add(home, original)


@cache
def _home(module: str, name: str) -> tuple[str, str]:
    """Return where a name that is imported from a module of the library is defined."""
    file = read(module)
    for _ in range(5):
        if file is None:
            break
        if name in file.definitions:
            return file.module, name
        if name not in file.imports or file.imports[name][1] is None:
            break
        source, found = file.imports[name]
        file, name = read(source), found or name
    raise NotLiftedError("library_part", f"{module}.{name}")


def _file(module: str) -> LibraryFile:
    file = read(module)
    if file is None:
        raise NotLiftedError("library_part", module)
    return file


@cache
def _definition(module: str, name: str) -> Definition:
    node: Definition = cleaned(_file(module).definitions[name])
    if isinstance(node, ast.ClassDef) and _kind(module, name) == "record":
        fields = _fields(module, name)
        text = f"{name} = namedtuple({name!r}, {fields!r}, defaults=[None] * {len(fields)})"
        return ast.parse(text).body[0]  # type: ignore[return-value]
    return node


def _fields(module: str, name: str) -> list[str]:
    """Return the fields of a record of the library, inherited ones first."""
    node = _file(module).definitions[name]
    assert isinstance(node, ast.ClassDef)
    inherited = [
        _fields(*_place(module, base.id))
        for base in node.bases
        if isinstance(base, ast.Name) and base.id != _RECORD
    ]
    own = [
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    ]
    return list(dict.fromkeys([*(field for fields in inherited for field in fields), *own]))


def _place(module: str, name: str) -> tuple[str, str]:
    """Return where a name that a module uses is defined."""
    file = _file(module)
    source, original = file.imports.get(name, ("", None))
    return (module, name) if name in file.definitions else _home(source, original or name)


def _top_level_names(tree: ast.Module) -> Iterator[str]:
    for part in tree.body:
        if isinstance(part, ast.ClassDef | ast.FunctionDef):
            yield part.name
        elif isinstance(part, ast.Assign):
            yield from (target.id for target in part.targets if isinstance(target, ast.Name))


@cache
def _text(module: str, name: str) -> str:
    return ast.unparse(_definition(module, name))


@cache
def _free_names(module: str, name: str) -> tuple[str, ...]:
    """Return the names that a definition reads and does not bind itself, in no order of meaning."""
    table = symtable.symtable(_text(module, name), module, "exec")
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()} - {name}
    used: set[str] = set()
    waiting = [table]
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        outer = scope.get_type() == "module"
        used |= {s.get_name() for s in scope.get_symbols() if s.is_referenced() and (outer or s.is_global())}
    return tuple(sorted(used - bound - {name}))


@cache
def _kind(module: str, name: str) -> str:
    """Return `layer` (a module of torch), `model` (derives from the library's), `record` or `other`."""
    node = _file(module).definitions[name]
    if not isinstance(node, ast.ClassDef):
        return "other"
    kinds = set()
    for base in node.bases:
        text = ast.unparse(base)
        if _MODULE_BASES.match(text) or text == "GradientCheckpointingLayer":
            kinds.add("layer")
        elif last_name(base) in ("PreTrainedModel", "GenerationMixin"):
            kinds.add("model")
        elif last_name(base) == _RECORD:
            kinds.add("record")
        elif isinstance(base, ast.Name):
            kinds.add(_kind_of_name(module, base.id))
    return next((kind for kind in ("model", "layer", "record") if kind in kinds), "other")


def _kind_of_name(module: str, name: str) -> str:
    file = _file(module)
    if name in file.definitions:
        return _kind(module, name)
    source, original = file.imports.get(name, ("", None))
    if source == "torch.nn":
        return "layer"
    if not source.startswith(f"{PACKAGE}.") or original is None:
        return "other"
    try:
        return _kind(*_home(source, original))
    except NotLiftedError:
        return "other"
