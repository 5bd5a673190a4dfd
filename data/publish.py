"""What is published: the files of a dataset folder, after they were loaded back as a user will load them."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import datasets
import pyarrow as pa

from data.errors import InputError
from data.front_matter import CONFIGS, DEVICES, FOLDERS, folder_of
from data.tables import read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile:
    """One file of a release."""

    place: str
    """Path in the repository."""
    path: Path
    size: int
    """Bytes."""


def release_files(folder: Path) -> list[ReleaseFile]:
    """Return the card and the tables of a dataset folder, in the order of their places."""
    places = [*(f"{name}/*" for name in FOLDERS.values()), f"{DEVICES}/*/*"]
    paths = [folder / "README.md", *(path for place in places for path in folder.glob(place))]
    return [
        ReleaseFile(place=path.relative_to(folder).as_posix(), path=path, size=path.stat().st_size)
        for path in sorted(paths)
    ]


def check_loads(folder: Path) -> None:
    """Load every config with `datasets`, in a cache of its own, and compare it with the files.

    Raises InputError where the folder cannot be loaded or gives other rows.
    """
    with tempfile.TemporaryDirectory(prefix="opweaver-load-") as cache:
        for config in [*CONFIGS, *sorted(path.name for path in folder.glob(f"{DEVICES}/*"))]:
            try:
                loaded = datasets.load_dataset(str(folder), config, cache_dir=cache)
            except Exception as error:  # whatever `datasets` raises over a card, a schema or a file
                cause = " ".join(str(error).split())
                raise InputError(
                    f"{folder}: config {config} cannot be loaded ({cause}); write it again with "
                    "`opweaver judge`"
                ) from error
            for split, rows in loaded.items():
                (path,) = folder.glob(f"{folder_of(config)}/{split}-*.parquet")
                if not _same(rows.with_format("arrow")[:], read_table(path)):
                    raise InputError(
                        f"{path}: `datasets` gives other rows than the file holds; write it again with "
                        "`opweaver judge`"
                    )


def _same(loaded: pa.Table, stored: pa.Table) -> bool:
    """Compare as text, because a NaN is no other's equal."""
    return loaded.column_names == stored.column_names and repr(loaded.to_pylist()) == repr(stored.to_pylist())
