"""The YAML block of a card, which the Hub and `datasets` read: licence, size, tags, configs, features."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from data.schema import DATASET, OPERATOR, REJECTED, arrow_schema

CONFIGS = {
    "default": "Accepted tasks",
    "rejected": "Candidates that were not accepted, with the reason",
    "operators": "What the tasks are composed of",
}
FOLDERS = {"default": "data", "rejected": "rejected", "operators": "operators"}
"""Where the Parquet files of a config lie."""
DEVICES = "devices"
"""Where one folder for each device lies, if several kinds have measured the rows: a config of its name."""

_COLUMNS = {"default": DATASET, "rejected": REJECTED, "operators": OPERATOR}
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_LICENCES = frozenset(
    (
        "apache-2.0",
        "mit",
        "bsd",
        "bsd-2-clause",
        "bsd-3-clause",
        "cc-by-4.0",
        "cc-by-sa-4.0",
        "cc0-1.0",
        "isc",
    )
)
"""Those of the Hub's own list that source text of torch libraries comes under; it refuses other names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One Parquet file of the folder; it is a whole split."""

    config: str
    split: str
    place: str
    """Path inside the folder."""
    rows: int
    """Rows with content; an empty table is stored as one row of nulls."""
    stored_rows: int
    table_bytes: int
    """Size of the table in memory."""
    file_bytes: int
    digest: str
    """sha256 of the file."""


def device_config(device_name: str) -> str:
    """Return the config of the rows of one device, such as `nvidia-h200`."""
    return re.sub(r"[^a-z0-9]+", "-", device_name.lower()).strip("-")


def folder_of(config: str) -> str:
    """Return where the Parquet files of a config lie in a dataset folder."""
    return FOLDERS.get(config) or f"{DEVICES}/{config}"


def configs_of(files: Iterable[TableFile]) -> list[str]:
    """Return all configs, those of single devices last."""
    return list(dict.fromkeys([*CONFIGS, *(file.config for file in files)]))


def front_matter(files: Sequence[TableFile], licences: Iterable[str]) -> str:
    """Return the YAML block; every value is written as JSON, which is YAML too."""
    tasks = sum(file.rows for file in files if file.config == "default")
    fields: dict[str, Any] = {
        "license": _hub_licences(licences),
        "pretty_name": "OpWeaver: fused operator tasks for GPU-kernel agents",
        "language": ["en"],
        "task_categories": ["text-generation"],
        "annotations_creators": ["machine-generated"],
        "source_datasets": ["original"],
        "size_categories": [next((name for limit, name in _SIZES if tasks < limit), "1M<n<10M")],
        "tags": ["code", "gpu-kernels", "cuda", "triton", "pytorch", "kernelbench", "reinforcement-learning"],
        "configs": [_config(name, files) for name in configs_of(files)],
        "dataset_info": [_info(name, files) for name in configs_of(files)],
    }
    return "\n".join(["---", *(_entry(name, value) for name, value in fields.items()), "---", ""])


def _entry(name: str, value: Any) -> str:
    """Return one field, with a line for each record of a list."""
    if isinstance(value, list) and isinstance(value[0], Mapping):
        return "\n".join([f"{name}:", *(f"- {json.dumps(record)}" for record in value)])
    return f"{name}: {json.dumps(value)}"


def _hub_licences(licences: Iterable[str]) -> str | list[str]:
    """Return the Hub's names for these licences; `other` for one that it does not list."""
    names = [name.strip().lower() for text in licences for name in text.split(",")]
    found = list(dict.fromkeys(name if name in _LICENCES else "other" for name in names))
    return found[0] if len(found) == 1 else found


def _config(name: str, files: Sequence[TableFile]) -> dict[str, Any]:
    """Return the entry of one config.

    `datasets` finds what it cached of a local folder by the folder's name and these entries, not by the
    files; so the description carries their digest, or another run's rows would be loaded.
    """
    own = [file for file in files if file.config == name]
    digest = hashlib.sha256("".join(file.digest for file in own).encode()).hexdigest()[:16]
    return {
        "config_name": name,
        **({"default": True} if name == "default" else {}),
        "description": f"{CONFIGS.get(name, f'Accepted tasks measured on {name}')}; content {digest}",
        "data_files": [{"split": file.split, "path": file.place} for file in own],
    }


def _info(name: str, files: Sequence[TableFile]) -> dict[str, Any]:
    """Return features and sizes of one config; `datasets` checks the row counts when it loads."""
    own = [file for file in files if file.config == name]
    return {
        "config_name": name,
        "features": _named(arrow_schema(_COLUMNS.get(name, DATASET))),
        "splits": [
            {"name": file.split, "num_bytes": file.table_bytes, "num_examples": file.stored_rows}
            for file in own
        ],
        "download_size": sum(file.file_bytes for file in own),
        "dataset_size": sum(file.table_bytes for file in own),
    }


def _named(fields: Iterable[pa.Field]) -> list[dict[str, Any]]:
    return [{"name": field.name, **_typed(field.type)} for field in fields]


def _typed(type: pa.DataType) -> dict[str, Any]:
    """Return a type in the notation of `datasets`: a lone `dtype` inside a list stands as its bare name."""
    if pa.types.is_list(type):
        if pa.types.is_struct(type.value_type):
            return {"list": _named(type.value_type)}
        inner = _typed(type.value_type)
        return {"list": inner.get("dtype", inner)}
    if pa.types.is_struct(type):
        return {"struct": _named(type)}
    return {"dtype": {"double": "float64"}.get(str(type), str(type))}
