"""The dataset card: what is in the folder, how it came about, and under which conditions it holds."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from data.columns_page import columns_table
from data.funnel import FunnelLine
from data.schema import DATASET

MARK = "Made with OpWeaver"
"""Stands in every card of ours and tells our folders from others."""

_DESCRIPTIONS = {
    "default": "Accepted tasks",
    "rejected": "Candidates that were not accepted, with the reason",
    "operators": "What the tasks are composed of",
}
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_MACHINE = (
    "device_name", "driver_version", "cuda_version", "torch_version", "transformers_version",
    "tf32_matmul", "tf32_cudnn",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """One Parquet file of the folder; it is a whole split."""

    config: str
    split: str
    place: str
    """Path inside the folder."""
    rows: int
    digest: str
    """sha256 of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a card tells."""

    rows: Sequence[Mapping[str, Any]]
    files: Sequence[TableFile]
    funnel: Sequence[FunnelLine]
    settings: str
    """TOML."""
    license: str


def card_text(card: Card) -> str:
    """Return `README.md`: YAML for the Hub, then Markdown for people."""
    sections = [_introduction(card), _funnel(card), _machine(card), _reproduction(card), _columns()]
    return "\n".join([front_matter(card), *sections])


def front_matter(card: Card) -> str:
    """Return the YAML block; every value is written as JSON, which is YAML too."""
    count = len(card.rows)
    fields = {
        "license": card.license,
        "pretty_name": "OpWeaver: fused operator tasks for GPU-kernel agents",
        "language": ["en"],
        "task_categories": ["text-generation"],
        "annotations_creators": ["machine-generated"],
        "size_categories": [next((name for limit, name in _SIZES if count < limit), "1M<n<10M")],
        "tags": ["code", "gpu-kernels", "cuda", "triton", "pytorch", "kernelbench", "reinforcement-learning"],
        "configs": [_config(name, card.files) for name in _DESCRIPTIONS],
    }
    return "\n".join(["---", *(f"{name}: {json.dumps(value)}" for name, value in fields.items()), "---", ""])


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
        "description": f"{_DESCRIPTIONS[name]}; content {digest}",
        "data_files": [{"split": file.split, "path": file.place} for file in own],
    }


def _introduction(card: Card) -> str:
    listed = "\n".join(f"| `{file.config}` | {file.split} | {file.rows:,} |" for file in card.files)
    return f"""# Fused operator tasks for GPU-kernel agents

Each row of the config `default` is one self-contained PyTorch module: a class `Model`, a function
`get_inputs()` and a function `get_init_inputs()`, as in KernelBench. An agent is asked for a faster kernel
that computes the same. Every row was executed before it was accepted: it is repeatable, depends on all of its
inputs, agrees with its compiled form, and runs long enough to be timed. `rejected` says why each other
candidate was not accepted; `operators` lists what the tasks are composed of. {MARK}.

```python
from datasets import load_dataset

tasks = load_dataset("this/dataset", split="train")
rejected = load_dataset("this/dataset", "rejected", split="train")
```

| config | split | rows |
|---|---|---|
{listed}
{_empty_tables(card)}"""


def _empty_tables(card: Card) -> str:
    empty = [f"`{file.config}`" for file in card.files if file.rows == 0 and file.config != "default"]
    if not empty:
        return ""
    return f"\nNothing to list in {' and '.join(empty)}: one row of nulls stands there, so that it loads.\n"


def _funnel(card: Card) -> str:
    total = sum(line.candidates for line in card.funnel)
    lines = "\n".join(f"| {line.stage} | {line.reason} | {line.candidates:,} |" for line in card.funnel)
    return f"""## Where the candidates went

| stage | reason | candidates |
|---|---|---|
{lines}
| all | | {total:,} |
"""


def _machine(card: Card) -> str:
    """List the distinct machines and versions of the rows."""
    machines = sorted(
        {tuple("" if row[name] is None else str(row[name]) for name in _MACHINE) for row in card.rows}
    )
    lines = "\n".join(f"| {' | '.join(machine)} |" for machine in machines)
    return f"""## Hardware and versions

Times, bits and peak memory hold for these machines and versions; other ones need a new measurement.

| {" | ".join(_MACHINE)} |
|{"---|" * len(_MACHINE)}
{lines}
"""


def _reproduction(card: Card) -> str:
    return f"""## How to make it again

`opweaver run` with these settings composes the same candidates. Times differ from run to run; with the
recorded ones (`--timings verdicts.parquet`) the same rows are accepted.

```toml
{card.settings.strip()}
```
"""


def _columns() -> str:
    return f"## Columns\n\n{columns_table(DATASET)}"
