"""The files of an installed transformers as syntax trees. Nothing of the library is imported."""

import ast
import importlib.util
import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from ops_crawler.source import SourceError

PACKAGE = "transformers"
_FIRST_IMPORT = re.compile(r"^(?:import|from) ", re.MULTILINE)
_LICENSE = re.compile(r"\blicen[cs]ed? |permission is hereby granted|redistribution and use", re.IGNORECASE)
Definition = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class LibraryFile:
    """One module of the library: what its top-level names stand for."""

    module: str
    """Dotted name, such as `transformers.models.bert.modeling_bert`."""
    path: Path
    definitions: dict[str, Definition] = field(default_factory=dict)
    """Classes, functions and assignments at the top level, by name."""
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """Imported name to module and the name in it; None where the module itself is bound."""

    @cached_property
    def copyright(self) -> tuple[str, ...]:
        """The copyright lines at the head of the file, without the comment signs."""
        lines = re.findall(r"^#?\s*(Copyright\b.*|\(c\).*)$", self._head, re.MULTILINE | re.IGNORECASE)
        return tuple(dict.fromkeys(line.strip() for line in lines))

    @cached_property
    def has_other_license(self) -> bool:
        """Whether the head of the file names another licence than the library's own, Apache-2.0."""
        return "Apache License" not in self._head and _LICENSE.search(self._head) is not None

    @cached_property
    def _head(self) -> str:
        return _FIRST_IMPORT.split(self.path.read_text(encoding="utf-8"), maxsplit=1)[0]


@cache
def library_folder() -> Path:
    """Return the folder of the installed transformers, without importing it. Raises `SourceError`."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SourceError("transformers is not installed; pip install transformers")
    return Path(spec.origin).parent


def library_version() -> str:
    """Return the version that the library's own file states."""
    text = (library_folder() / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"', text, re.MULTILINE)
    return found[1] if found else "unknown"


def modeling_modules() -> list[str]:
    """Return the names of all modeling modules, sorted."""
    files = library_folder().glob("models/*/modeling_*.py")
    return sorted(f"{PACKAGE}.models.{file.parent.name}.{file.stem}" for file in files)


def family_of(module: str) -> str:
    """Return the model family that a modeling module belongs to."""
    return module.split(".")[2]


def find_file(module: str) -> Path | None:
    """Return the file of a module of the library."""
    place = library_folder().joinpath(*module.split(".")[1:])
    for path in (place.parent / f"{place.name}.py", place / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def read(module: str) -> LibraryFile | None:
    """Return a module of the library, None where it has no file."""
    path = find_file(module)
    if path is None:
        return None
    file = LibraryFile(module, path)
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        _enter(file, statement)
    return file


def _enter(file: LibraryFile, statement: ast.stmt) -> None:
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            bound = alias.asname or alias.name.partition(".")[0]
            file.imports[bound] = _binding(alias.name if alias.asname else bound)
    elif isinstance(statement, ast.ImportFrom):
        module = _absolute(file, statement)
        for alias in statement.names:
            file.imports[alias.asname or alias.name] = (module, alias.name)
    elif isinstance(statement, ast.ClassDef | ast.FunctionDef):
        file.definitions[statement.name] = statement
    elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Name):
                file.definitions[target.id] = statement
    elif isinstance(statement, ast.If | ast.Try):  # imports that depend on what is installed
        for part in statement.body:
            if isinstance(part, ast.Import | ast.ImportFrom):
                _enter(file, part)


def _binding(dotted: str) -> tuple[str, str | None]:
    """Return module and name of `import a.b as c`, which is spelled like `from a import b`."""
    module, _, name = dotted.rpartition(".")
    return (module, name) if module else (dotted, None)


def _absolute(file: LibraryFile, statement: ast.ImportFrom) -> str:
    if statement.level == 0:
        return statement.module or ""
    package = file.module.split(".")
    if file.path.name != "__init__.py":
        package = package[:-1]
    package = package[: len(package) - statement.level + 1]
    return ".".join([*package, *([statement.module] if statement.module else [])])
