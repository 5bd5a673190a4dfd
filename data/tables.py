"""Parquet tables with an explicit schema, written whole or not at all."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data.errors import InputError, StorageError
from data.schema import Column, arrow_schema

_INT64 = 2**63
_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space and run the same command again",
    errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
    errno.EFBIG: "the file is larger than the limit of this process; raise it and run the same command again",
    errno.EROFS: "the disk is read-only; choose another place",
    errno.EACCES: "no right to write there; choose another place",
    errno.EPERM: "no right to write there; choose another place",
    errno.ENOTDIR: "a part of this path is a file; choose another place",
    errno.EEXIST: "a part of this path is a file; choose another place",
    errno.EISDIR: "this is a folder; give a file name",
}


def table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column]) -> pa.Table:
    """Build a table whose rows have exactly the given columns.

    Lone surrogates become their escapes, as in `content_id`, and integers beyond 64 bits the nearest
    that fits: a candidate that took its worker over may report anything.
    """
    names = {column.name for column in columns}
    for row in rows:
        if row.keys() != names:
            raise ValueError(f"columns differ from the schema: {sorted(row.keys() ^ names)}")
    return pa.Table.from_pylist([storable(row) for row in rows], schema=arrow_schema(columns))


def storable(value: Any) -> Any:
    """Return a value as it can stand in a cell; see `table_of`."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, Mapping):
        return {name: storable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [storable(inner) for inner in value]
    if type(value) is int:
        return max(-_INT64, min(value, _INT64 - 1))
    return value


def write_table(path: Path, table: pa.Table) -> None:
    """Write one Parquet file in the place of an older one. Raises StorageError."""
    with replacing(path) as temporary:
        write_parquet(temporary, table)


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write one Parquet file to the disk. Raises OSError.

    Chunks are cut by content, so that the Hub stores only what changed.
    """
    pq.write_table(table, path, compression="zstd", use_content_defined_chunking=True, write_page_index=True)
    _sync(path)


def read_table(path: Path) -> pa.Table:
    """Read one Parquet file. Raises InputError where it is missing, damaged or of another format."""
    with _opened(path) as file:
        return file.read()


def column_names(path: Path) -> set[str]:
    """Return the names of the columns of one Parquet file; raises as `read_table` does."""
    with _opened(path) as file:
        return set(file.schema_arrow.names)


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path}: not a readable Parquet file ({_one_line(error)}); check or rewrite it"
        ) from error


def read_rows(path: Path, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Read the given columns of one Parquet file as rows; raises as `rows_of` does."""
    return rows_of(read_table(path), columns, str(path))


def rows_of(table: pa.Table, columns: Sequence[Column], where: str) -> list[dict[str, Any]]:
    """Return the given columns of a table as rows.

    Raises InputError where a column is missing or of a type that does not fit.
    """
    missing = [column.name for column in columns if column.name not in table.column_names]
    if missing:
        raise InputError(f"{where}: lacks the columns {', '.join(missing)}; write it again with this version")
    try:
        return table.select([column.name for column in columns]).cast(arrow_schema(columns)).to_pylist()
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(
            f"{where}: has other types than ours ({_one_line(error)}); write it again"
        ) from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; what is written there to the disk takes its place at the end.

    Killed or failing before, the old file stays. Raises StorageError.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def _sync(path: Path) -> None:
    """Wait until a file or the entries of a folder are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_error(path: Path, error: OSError) -> StorageError:
    """Put a failed write into one line that says what to do."""
    advice = _ADVICE.get(error.errno or 0, f"{error.strerror or _one_line(error)}; choose another place")
    return StorageError(f"{path}: cannot be written: {advice}")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
