"""Find a source by what the user calls it: `torch`, an entry point, a dotted path, a folder."""

import importlib
import inspect
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ops_crawler.folder_source import FolderSource
from ops_crawler.source import Source, SourceError, one_line
from ops_crawler.torch_source import TorchSource
from ops_crawler.transformers_source import TransformersSource

GROUP = "opweaver.sources"
"""Entry point group under which packages register their sources."""
BUILT_IN: dict[str, Source] = {"torch": TorchSource(), "transformers": TransformersSource()}


def find_source(name: str) -> Source:
    """Return the source of that name. Raises `SourceError`.

    In this order: a built-in source, `package.module:object`, a name of the entry point group, a folder. The
    object, or what the entry point names, is a source or a class that makes one without arguments.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    if ":" in name:
        return _loaded(name, lambda: _by_path(name))
    registered = {point.name: point for point in entry_points(group=GROUP)}
    if name in registered:
        return _loaded(name, registered[name].load)
    if Path(name).is_dir():
        return FolderSource(Path(name))
    known = ", ".join(sorted({*BUILT_IN, *registered}))
    raise SourceError(
        f"is neither a known source ({known}) nor a folder; "
        "own ones are given as package.module:object or as a folder of .py files"
    )


def _by_path(name: str) -> Any:
    module, _, path = name.partition(":")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # the command is started from a script's folder
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _loaded(name: str, load: Any) -> Source:
    try:
        found = load()
        source: Any = found() if inspect.isclass(found) else found
    except (Exception, SystemExit) as error:  # whatever the user's own code raises
        raise SourceError(one_line(error)) from None
    if not callable(getattr(source, "operators", None)):
        raise SourceError(f"{type(source).__name__} has no method operators()")
    own: Source = source
    return own
