"""Task sets of any origin, read as candidates.

Known layouts, by their columns: CUDA-Agent-Ops-6K (`ops`, `data_source`, `code`; `ops` is a JSON array, but
a bare `ClassName_k` in its transformers rows), KernelBench (`code`, `level`, `name`, `problem_id`), our own
`candidates.parquet` and dataset rows; else any table with a column `code`. Every candidate is foreign: no
file can claim to be composed by our own rules.

Text is taken byte for byte. Bytes that are not UTF-8 become lone surrogates, which the source filter rejects.
Everything here raises InputError with one line about what cannot be read.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from composer.candidate import Candidate
from data.errors import InputError
from data.files import read_candidates
from data.quiet import quiet_hub_libraries
from data.schema import CANDIDATE
from data.tables import column_names, read_table

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_VARIANT = re.compile(r"_\d+$")
_NAMES_SHOWN = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSet:
    """The tasks of a set, and where they came from a table, all that it says of them."""

    candidates: list[Candidate]
    tables: list[pa.Table]
    """Row for row the candidates; empty where they came from text files."""


def read_taskset(where: str) -> list[Candidate]:
    """Read the candidates of a set; see `open_taskset`."""
    return open_taskset(where).candidates


def open_taskset(where: str) -> TaskSet:
    """Read a .parquet, .jsonl or .py file, a folder of them, a dataset folder of ours or a Hub id."""
    path = Path(where)
    try:
        if path.is_dir():
            found = _from_folder(path)
        elif path.is_file():
            found = _from_file(path)
        elif is_hub_id(where):
            found = _from_tables((table, where) for table in hub_tables(where))
        else:
            raise InputError(f"{where}: no such file or folder; check the path")
    except OSError as error:
        raise InputError(
            f"{error.filename or where}: cannot be read ({error.strerror}); check the path and its rights"
        ) from error
    if not found.candidates:
        raise InputError(f"{where}: holds no tasks; give a set with at least one")
    return found


def is_hub_id(where: str) -> bool:
    """Return whether this is the name of a set on the Hugging Face Hub."""
    return _HUB_ID.fullmatch(where) is not None


def hub_tables(name: str) -> list[pa.Table]:
    """Read all splits of a set on the Hugging Face Hub, or of a folder in its format."""
    try:
        from datasets import load_dataset

        quiet_hub_libraries()
    except ImportError:
        raise InputError(f"{name}: the Hub needs the package `datasets`; install it or give a file") from None
    try:
        return [split.with_format("arrow")[:] for split in load_dataset(name).values()]
    except Exception as error:  # whatever the network, the Hub or one of its many formats raises
        cause = " ".join(str(error).split())
        raise InputError(
            f"{name}: neither here nor readable from the Hub ({cause}); check the name and the network"
        ) from error


def _from_tables(named: Iterable[tuple[pa.Table, str]]) -> TaskSet:
    named = list(named)
    rows = (row for table, where in named for row in _rows(table, where))
    return TaskSet(candidates=_candidates(rows), tables=[table for table, _ in named])


def _from_folder(folder: Path) -> TaskSet:
    """Read the .py files of a folder and its subfolders, or its tables where none lies in it directly."""
    tables = sorted((folder / "data").glob("*.parquet")) or sorted(folder.glob("*.parquet"))
    lines = sorted(folder.glob("*.jsonl"))
    if not any(folder.glob("*.py")):
        if tables:
            return _from_tables((read_table(path), str(path)) for path in tables)
        if lines:
            return _from_rows(row for path in lines for row in _json_lines(path))
    scripts = [
        path for path in folder.rglob("*.py") if path.is_file() and _is_visible(path.relative_to(folder))
    ]
    if not scripts:
        raise InputError(f"{folder}: holds no .py, .parquet or .jsonl file; give a folder with tasks")
    candidates = [
        Candidate(index=index, name=path.relative_to(folder).with_suffix("").as_posix(), code=_text_of(path))
        for index, path in enumerate(sorted(scripts))
    ]
    return TaskSet(candidates=candidates, tables=[])


def _is_visible(path: Path) -> bool:
    return not any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _from_file(path: Path) -> TaskSet:
    if path.suffix == ".py":
        only = Candidate(index=0, name=path.stem, code=_text_of(path))
        return TaskSet(candidates=[only], tables=[])
    if path.suffix == ".jsonl":
        return _from_rows(_json_lines(path))
    if path.suffix != ".parquet":
        raise InputError(f"{path}: unknown kind of file; give .py, .parquet or .jsonl")
    if {column.name for column in CANDIDATE} <= column_names(path):
        return TaskSet(candidates=read_candidates(path), tables=[])
    return _from_tables([(read_table(path), str(path))])


def _from_rows(rows: Iterable[dict[str, Any]]) -> TaskSet:
    return TaskSet(candidates=_candidates(rows), tables=[])


def _text_of(path: Path) -> str:
    return _decoded(path.read_bytes())


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield one object per line; only a line feed ends a line, whatever else Python takes for an end."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(_decoded(line))
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict) or "code" not in row:
            raise InputError(
                f"{path}: line {number} is no JSON object with a field `code` (a cut file?); "
                "repair or remove that line"
            )
        yield row


def _rows(table: pa.Table, where: str) -> Iterator[dict[str, Any]]:
    if "code" not in table.column_names:
        found = ", ".join(table.column_names[:_NAMES_SHOWN])
        more = ", …" if len(table.column_names) > _NAMES_SHOWN else ""
        raise InputError(
            f"{where}: no column `code`, which the layouts of Ops-6K, KernelBench and OpWeaver all have "
            f"(found: {found}{more}); name the column with the tasks' source so"
        )
    columns = {name: _values(table[name]) for name in table.column_names if name in _FIELDS}
    for position in range(table.num_rows):
        yield {name: values[position] for name, values in columns.items()}


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python values, text that is not UTF-8 as bytes."""
    try:
        return column.to_pylist()
    except UnicodeDecodeError:
        nested = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
        return column.cast(pa.list_(pa.large_binary()) if nested else pa.large_binary()).to_pylist()


_FIELDS = (
    "code", "name", "id", "ops", "requested_ops",
    "data_source", "composer", "seed", "request_hash", "source_license", "source_path",
)  # fmt: skip


def _candidates(rows: Iterable[dict[str, Any]]) -> list[Candidate]:
    return [_candidate(index, row) for index, row in enumerate(rows)]


def _candidate(index: int, row: dict[str, Any]) -> Candidate:
    name = next((_text(row[key]) for key in ("name", "id") if row.get(key) is not None), None)
    data_source = _text(row.get("data_source"))
    wanted = row.get("requested_ops")
    return Candidate(
        index=index,
        name=str(index) if name is None else name,
        code=_text(row.get("code")) or "",
        requested_ops=labels(row.get("ops") if wanted is None else wanted, data_source),
        data_source=data_source,
        composer=_text(row.get("composer")),
        seed=row["seed"] if type(row.get("seed")) is int else None,
        request_hash=_text(row.get("request_hash")),
        source_license=_text(row.get("source_license")),
        source_path=_text(row.get("source_path")),
    )


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        return _decoded(value)
    return value if value is None else str(value)


def labels(ops: Any, data_source: str | None) -> tuple[str, ...]:
    """Return operator names from a list, the text of a JSON array, or one bare name.

    The number at the end of a bare transformers name counts variants of one class and is dropped.
    """
    if isinstance(ops, str | bytes):
        bare = _text(ops) or ""
        try:
            ops = json.loads(bare)
        except (ValueError, RecursionError):
            ops = None
        if not isinstance(ops, list):
            ops = [_VARIANT.sub("", bare) if data_source == "transformers" else bare]
    return tuple(_text(name) or "" for name in ops or ())
