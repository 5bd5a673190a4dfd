"""A dataset in the layouts of those who train and evaluate on it: KernelBench, TRL, verl.

The source text is carried over byte for byte, so a task is found again by its `id`, the sha256 of its text.
"""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from composer.candidate import Candidate
from data.errors import InputError
from data.schema import DATASET
from data.tables import rows_of, storable, storage_error, write_parquet
from data.tasksets import labels, open_taskset

_CARRIED = ("difficulty", "eager_ms", "compile_ms", "device_name")
"""Columns that a reward needs besides the text: the baselines and where they hold."""
_NEEDED = tuple(
    column for column in DATASET if column.name in ("code", "ops", "data_source", "split", *_CARRIED)
)
"""A set that has all of these was made by us, by whatever version."""
_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
_NAME_LENGTH = 80
_SPLIT = re.compile(r"[A-Za-z0-9][\w-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What any format needs of a row."""

    id: str
    code: str
    ops: tuple[str, ...]
    """Canonical names, or what the set calls them; empty if unknown."""
    data_source: str
    """`torch#K`, `transformers` or, in a set that does not say, `unknown`."""
    split: str
    carried: Mapping[str, Any]
    """The columns of `_CARRIED`; None in a set that was not measured by us."""


def read_tasks(where: str) -> list[Task]:
    """Read a run directory, a dataset of ours or any task set (see `open_taskset`). Raises InputError."""
    path = Path(where)
    if (path / "dataset").is_dir():
        return read_tasks(str(path / "dataset"))
    if (path / "settings.toml").exists():
        raise InputError(
            f"{where}: this run has no dataset yet; finish it with `opweaver run --run-dir {where}`"
        )
    found = open_taskset(where)
    if not found.tables or not all(_is_ours(table) for table in found.tables):
        return [_task_of_candidate(candidate) for candidate in found.candidates]
    rows = (row for table in found.tables for row in rows_of(table, _NEEDED, where))
    return [_task_of_row(*pair, where) for pair in zip(found.candidates, rows, strict=True)]


def _is_ours(table: pa.Table) -> bool:
    return {column.name for column in _NEEDED} <= set(table.column_names)


def _task_of_row(candidate: Candidate, row: Mapping[str, Any], where: str) -> Task:
    """Take the columns of a dataset of ours along. Raises InputError for a split that can name no file."""
    split = row["split"] or "train"
    if not _SPLIT.fullmatch(split):
        raise InputError(
            f"{where}: row {candidate.index} has the split {split!r}; name it train or validation"
        )
    return Task(
        id=candidate.id,
        code=candidate.code,
        ops=labels(row["ops"], row["data_source"]),
        data_source=row["data_source"] or "unknown",
        split=split,
        carried={name: row[name] for name in _CARRIED},
    )


def _task_of_candidate(candidate: Candidate) -> Task:
    return Task(
        id=candidate.id,
        code=candidate.code,
        ops=candidate.requested_ops,
        data_source=candidate.data_source or "unknown",
        split="train",
        carried=dict.fromkeys(_CARRIED),
    )


def export(tasks: Sequence[Task], format: str, out: Path) -> Path:
    """Write the tasks in one of `FORMATS` to a new folder, whole or not at all; return it.

    Raises InputError where the folder holds something or a text is not UTF-8, StorageError.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is there already and not empty; choose another folder")
    broken = next((place for place, task in enumerate(tasks) if not _is_utf8(task.code)), None)
    if broken is not None:
        raise InputError(
            f"task {broken} of {len(tasks):,} (id {tasks[broken].id[:12]}): its text is not UTF-8, which no "
            "format can hold; leave it out or repair it"
        )
    unfinished = out.with_name(f".{out.name}.unfinished")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        FORMATS[format](tasks, unfinished)
        if out.exists():
            out.rmdir()
        unfinished.rename(out)
    except OSError as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise storage_error(out, error) from error
    return out


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def write_kernelbench(tasks: Sequence[Task], folder: Path) -> None:
    """Write `level1/1_NAME.py`, `level1/2_NAME.py` and so on, numbered from 1 in each level.

    Levels as in KernelBench: 1 is one operator, 2 several fused ones, 3 a whole layer of transformers. The
    split validation lies in a folder of that name, with levels of its own.
    """
    numbers: Counter[Path] = Counter()
    for task in tasks:
        level = 3 if task.data_source == "transformers" else 1 if len(task.ops) == 1 else 2
        place = (folder if task.split == "train" else folder / task.split) / f"level{level}"
        numbers[place] += 1
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{numbers[place]}_{_file_name(task)}.py").write_bytes(task.code.encode("utf-8"))


def _file_name(task: Task) -> str:
    short = "_".join(name.rpartition(".")[2] for name in task.ops)
    return re.sub(r"\W+", "_", short, flags=re.ASCII).strip("_")[:_NAME_LENGTH] or "task"


def write_trl(tasks: Sequence[Task], folder: Path) -> None:
    """Write a prompt-only set for GRPO, one Parquet file per split.

    `prompt` is a list of messages. The trainer hands every other column to the reward function by its name.
    """
    schema = pa.schema(
        [
            ("prompt", _MESSAGES),
            ("task_id", pa.string()),
            ("code", pa.string()),
            ("ops", pa.list_(pa.string())),
            ("data_source", pa.string()),
            *_carried_fields(),
        ]
    )
    for split, members in _by_split(tasks).items():
        rows: list[dict[str, Any]] = [
            {
                "prompt": _messages(task),
                "task_id": task.id,
                "code": task.code,
                "ops": task.ops,
                "data_source": task.data_source,
                **task.carried,
            }
            for task in members
        ]
        write_parquet(folder / f"{split}.parquet", _table(rows, schema))


def write_verl(tasks: Sequence[Task], folder: Path) -> None:
    """Write verl's five columns, one Parquet file per split.

    `data_source` chooses the reward function and is the same for all rows; `reward_model.ground_truth` is the
    reference text that an answer is compared with.
    """
    extra = [
        ("index", pa.int64()),
        ("split", pa.string()),
        ("task_id", pa.string()),
        ("task_source", pa.string()),
        ("ops", pa.list_(pa.string())),
        *_carried_fields(),
    ]
    schema = pa.schema(
        [
            ("data_source", pa.string()),
            ("prompt", _MESSAGES),
            ("ability", pa.string()),
            ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
            ("extra_info", pa.struct(extra)),
        ]
    )
    for split, members in _by_split(tasks).items():
        rows: list[dict[str, Any]] = [
            {
                "data_source": "opweaver",
                "prompt": _messages(task),
                "ability": "code",
                "reward_model": {"style": "rule", "ground_truth": task.code},
                "extra_info": {
                    "index": index,
                    "split": split,
                    "task_id": task.id,
                    "task_source": task.data_source,
                    "ops": task.ops,
                    **task.carried,
                },
            }
            for index, task in enumerate(members)
        ]
        write_parquet(folder / f"{split}.parquet", _table(rows, schema))


FORMATS: dict[str, Callable[[Sequence[Task], Path], None]] = {
    "kernelbench": write_kernelbench,
    "trl": write_trl,
    "verl": write_verl,
}


def _table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([storable(row) for row in rows], schema=schema)


def _carried_fields() -> list[tuple[str, pa.DataType]]:
    types = {column.name: column.type for column in DATASET}
    return [(name, types[name]) for name in _CARRIED]


def _by_split(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    splits = dict.fromkeys(task.split for task in tasks)
    return {split: [task for task in tasks if task.split == split] for split in splits}


def _messages(task: Task) -> list[dict[str, str]]:
    """Return the one message that states the task."""
    request = (
        "Below is a PyTorch module. Write a class `ModelNew` that computes the same with faster GPU kernels "
        "of your own. It takes the arguments of `get_init_inputs()`, holds parameters of the same names and "
        "shapes, and is called with the tensors of `get_inputs()`. Answer with one Python file in a fenced "
        "code block.\n\n"
        f"```python\n{task.code.rstrip()}\n```"
    )
    return [{"role": "user", "content": request}]
