"""What became of each modeling module, on disk, so that an interrupted build goes on where it stopped.

One JSON file per module in a folder of one's own. A result counts only for the same package text, libraries
and classes; one that a time limit cut short is not kept and so is tried again.
"""

import hashlib
import importlib.metadata
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

Results = list[dict[str, Any]]
"""Of one module: `name` and `layer`, or `name`, `reason` and `detail`, for each of its classes."""


@dataclass(frozen=True)
class Kept:
    """A folder of results."""

    folder: Path

    def get(self, module: str, names: Sequence[str]) -> Results | None:
        """Return what became of these classes, None where that is not known."""
        file = self._file(module)
        if not file.is_file():
            return None
        stored = json.loads(file.read_text(encoding="utf-8"))
        results: Results = stored["results"]
        return results if stored["key"] == _key(names) else None

    def put(self, module: str, names: Sequence[str], results: Results) -> None:
        """Keep what became of these classes; the file is whole or not there at all."""
        if any(one.get("reason") == "time_limit" for one in results):
            return
        file = self._file(module)
        self.folder.mkdir(parents=True, exist_ok=True)
        half = file.with_suffix(".part")
        half.write_text(json.dumps({"key": _key(names), "results": results}), encoding="utf-8")
        half.replace(file)

    def _file(self, module: str) -> Path:
        return self.folder / f"{module}.json"


@cache
def _surroundings() -> str:
    """Return the text of this package and the versions of the libraries, as this process began with them."""
    texts = [file.read_text(encoding="utf-8") for file in sorted(Path(__file__).parent.glob("*.py"))]
    versions = [importlib.metadata.version(package) for package in ("torch", "transformers")]
    return "\0".join([*texts, *versions])


def _key(names: Sequence[str]) -> str:
    """Return what a result depends on, as sha256: this package, torch, transformers and the classes."""
    return hashlib.sha256("\0".join([_surroundings(), *names]).encode()).hexdigest()
