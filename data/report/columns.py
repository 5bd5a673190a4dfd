"""The measured columns of a dataset of ours."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from data.schema import DATASET, MEASUREMENT

MACHINE = (
    "device_name", "driver_version", "cuda_version", "torch_version", "transformers_version",
    "tf32_matmul", "tf32_cudnn",
)  # fmt: skip
_MEASURED = {column.name for column in MEASUREMENT}
_TYPES = {
    column.name: column.type
    for column in DATASET
    if column.name in MACHINE or (column.name in _MEASURED and column.name != "ops")
}


def known_columns(tables: Iterable[pa.Table]) -> list[dict[str, Any]]:
    """Return for each row of the tables what our columns say of it.

    `ops` is among them only in a set of ours, where it names what ran; elsewhere it is a claim. Columns
    that merely share a name with ours are left out.
    """
    return [row for table in tables for row in _rows(table)]


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    ours = [name for name, wanted in _TYPES.items() if _has(table, name, wanted)]
    if _has(table, "op_count", pa.int64()):
        ours.append("ops")
    if not ours:
        return [{} for _ in range(table.num_rows)]
    return [
        {name: _as_tuple(value) for name, value in row.items() if value is not None}
        for row in table.select(ours).to_pylist()
    ]


def _has(table: pa.Table, name: str, wanted: pa.DataType) -> bool:
    return name in table.column_names and table.schema.field(name).type.equals(wanted)


def _as_tuple(value: Any) -> Any:
    return tuple(_as_tuple(each) for each in value) if isinstance(value, list) else value
