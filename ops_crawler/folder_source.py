"""A folder of `.py` files as a source: each public `nn.Module` class in it is an operator."""

import hashlib
import importlib
import inspect
import sys
import types
from collections.abc import Iterator
from pathlib import Path

from torch import nn

from ops_crawler.operator import Operator
from ops_crawler.own import own_operator
from ops_crawler.source import one_line


class FolderSource:
    """Imports the files one by one; this runs the user's own code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[str] = []
        """One line for every file that could not be imported, after `operators` has run."""

    def operators(self) -> Iterator[Operator]:
        """Yield the classes in the order of files and lines; a file that fails is left out and told of."""
        package = self._package()
        for file in sorted(self.folder.glob("*.py")):
            if file.name == "__init__.py":
                continue
            try:
                module = importlib.import_module(f"{package}.{file.stem}")
            except (Exception, SystemExit) as error:  # whatever the user's own code raises
                self.problems.append(f"{file}: {one_line(error)}")
                continue
            for name, target in vars(module).items():
                if _is_own_module(target, module) and not name.startswith("_"):
                    yield own_operator(target, name=f"{self.folder.name}.{file.stem}.{name}")

    def _package(self) -> str:
        """Return a package that stands for the folder, so that its files may import one another."""
        path = str(self.folder.resolve())
        name = f"own_{hashlib.sha256(path.encode()).hexdigest()[:12]}"
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = [path]
            sys.modules[name] = package
        return name


def _is_own_module(target: object, module: types.ModuleType) -> bool:
    return inspect.isclass(target) and issubclass(target, nn.Module) and target.__module__ == module.__name__
