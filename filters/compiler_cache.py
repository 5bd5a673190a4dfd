"""Each worker starts from a copy of one warmed compiler's cache; precompiled headers outlive the run.

A header costs inductor 13 s of CPU time once and then saves 2 s per kernel (torch 2.13, g++ 12). Its
name is a hash of its contents, the compiler's version and flags, so that an outdated one is never taken.
Only the warm-up, which compiles a task of ours, adds to what is kept.
"""

import contextlib
import importlib.metadata
import os
import shutil
import tempfile
from pathlib import Path

_INDUCTOR = "inductor"  # as in `filters.worker.keeper`
_HEADERS = "headers"  # as in `filters.worker.session`
IMPORTED = "imported"
"""File in which the warm-up lists the modules that it has imported, one a line."""


class CompilerCache:
    """The warmed cache of one engine."""

    def __init__(self, scratch_root: Path) -> None:
        self._warm = scratch_root / "warm"
        self._kept_headers = _user_cache() / f"headers-torch-{importlib.metadata.version('torch')}"

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up has filled it."""
        return self._warm.exists()

    def imported(self) -> list[str]:
        """Return the modules that the warm-up has imported. Raises OSError."""
        return (self._warm / IMPORTED).read_text(encoding="utf-8").splitlines()

    def copy_to(self, scratch: Path) -> None:
        """Fill the cache of a new worker. Raises OSError."""
        if self.is_warm:
            shutil.copytree(self._warm, scratch / _INDUCTOR, copy_function=_copy_or_link)
        elif self._kept_headers.exists():
            shutil.copytree(self._kept_headers, scratch / _INDUCTOR / _HEADERS, copy_function=_copy_or_link)

    def take_from(self, scratch: Path) -> None:
        """Keep what the warm-up has compiled. Raises OSError."""
        (scratch / _INDUCTOR).rename(self._warm)
        with contextlib.suppress(OSError):  # without a writable home every run compiles its headers anew
            self._keep_headers()

    def _keep_headers(self) -> None:
        new = [path for path in self._warm.glob(f"{_HEADERS}/*.h*") if not path.is_symlink()]
        self._kept_headers.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._kept_headers.parent) as folder:
            for header in sorted(new):  # NAME.h before NAME.h.gch
                if not (self._kept_headers / header.name).exists():
                    Path(shutil.copy(header, folder)).rename(self._kept_headers / header.name)


def _copy_or_link(source: str, target: str) -> None:
    """Copy what a worker may change; link precompiled headers, which are large and stay as they are."""
    if source.endswith(".gch"):
        Path(target).symlink_to(source)
    else:
        shutil.copy2(source, target)


def _user_cache() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME")
    return (Path(folder) if folder else Path("~/.cache").expanduser()) / "opweaver"
