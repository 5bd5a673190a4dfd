"""The dataset folder, ready for the Hub: a card and three configs.

`data/` holds the accepted rows (config `default`), `rejected/` and `operators/` the others, one Parquet
file per split, each with the schema's explicit types.
"""

import hashlib
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from data.card import MARK, Card, card_text
from data.errors import InputError
from data.front_matter import TableFile, device_config, folder_of
from data.funnel import FunnelLine
from data.rows import with_splits
from data.schema import DATASET, OPERATOR, REJECTED
from data.tables import storage_error, table_of, write_parquet
from filters.policy import Policy
from ops_crawler.operator import Operator


def write_dataset(
    folder: Path,
    *,
    rows: Sequence[Mapping[str, Any]],
    rejected: Sequence[Mapping[str, Any]],
    operators: Iterable[Operator],
    funnel: Sequence[FunnelLine],
    policy: Policy,
    settings: str,
    name: str = "ORG/NAME",
    license: str = "apache-2.0",
) -> Path:
    """Write a whole dataset folder and put it in the place of an older one; return it.

    `rows` come from `dataset_row`, `rejected` from `rejected_row`; splits are set here. `policy` is
    what the rows were judged by, `settings` the TOML text that the card shows, `name` the repository in its
    example. The old folder stays complete until the new one is; only a kill between
    the two renames at the end leaves none, and then the next call writes it again. Raises StorageError, and
    InputError where the folder holds something that is not a dataset of ours.
    """
    _refuse_foreign(folder)
    rows = with_splits(rows)
    by_split = {split: [row for row in rows if row["split"] == split] for split in ("train", "validation")}
    tables = {("default", split): table_of(members, DATASET) for split, members in by_split.items()}
    if not by_split["validation"]:
        del tables["default", "validation"]
    tables |= _of_single_devices(rows)
    tables["rejected", "train"] = table_of(rejected, REJECTED)
    tables["operators", "train"] = table_of([_operator_row(operator) for operator in operators], OPERATOR)

    unfinished = folder.with_name(f".{folder.name}.unfinished")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        files = [_write(unfinished, config, split, table) for (config, split), table in tables.items()]
        card = Card(
            name=name,
            rows=rows,
            files=files,
            funnel=funnel,
            policy=policy,
            settings=settings,
            license=license,
        )
        (unfinished / "README.md").write_text(card_text(card), encoding="utf-8")
        _swap_in(unfinished, folder)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise storage_error(folder, error) from error
    return folder


def _of_single_devices(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], pa.Table]:
    """Return the rows of each device as tables of their own, none where there is only one device."""
    members: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        members[device_config(row["device_name"]), row["split"]].append(row)
    if len({config for config, _ in members}) < 2:
        return {}
    return {place: table_of(each, DATASET) for place, each in sorted(members.items())}


def _operator_row(operator: Operator) -> dict[str, Any]:
    """Return the row of an operator; the source text of one's own only where it may be passed on."""
    row = asdict(operator)
    if row["usage"] and not row["usage"]["license"]:
        row["usage"]["code"] = None
    return row


def _write(folder: Path, config: str, split: str, table: pa.Table) -> TableFile:
    """Write one split. One row of nulls stands in an empty one, because `datasets` cannot load that; but not
    among the tasks, where it would be taken for one."""
    place = f"{folder_of(config)}/{split}-00000-of-00001.parquet"
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    stand_in = table.num_rows == 0 and config != "default"
    stored = pa.Table.from_pylist([{}], schema=table.schema) if stand_in else table
    write_parquet(path, stored)
    content = path.read_bytes()
    return TableFile(
        config=config,
        split=split,
        place=place,
        rows=table.num_rows,
        stored_rows=stored.num_rows,
        table_bytes=stored.nbytes,
        file_bytes=len(content),
        digest=hashlib.sha256(content).hexdigest(),
    )


def _refuse_foreign(folder: Path) -> None:
    """Keep a folder that we did not write from being replaced."""
    card = folder / "README.md"
    try:
        ours = not folder.exists() or not any(folder.iterdir()) or MARK in card.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        ours = False
    if not ours:
        raise InputError(f"{folder}: holds something else than a dataset of ours; choose another folder")


def _swap_in(new: Path, folder: Path) -> None:
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)
