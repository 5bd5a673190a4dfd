"""The one source of all columns: name, type, unit and meaning, in the order of the files.

Columns that only carry a field of a record over (`Measurement`, `Candidate`, `Operator`) are derived from
that record: the type from its annotation, the unit from its name, the meaning from its docstring.
`docs/columns.md` is generated from here (`python -m data.columns_page`).
"""

import ast
import dataclasses
import inspect
import textwrap
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from composer.candidate import Candidate
from filters.measurement import Measurement
from ops_crawler.operator import Operator

_TEXT = pa.string()
_TEXTS = pa.list_(pa.string())
_SCALARS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
_UNITS = {
    "ms": "ms",
    "mb": "MB (10^6 bytes)",
    "bytes": "bytes",
    "seconds": "s",
    "flops": "FLOP",
    "share": "0 to 1",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: pa.DataType
    unit: str
    """Empty where the value has none."""
    meaning: str


def columns_of(record: type) -> tuple[Column, ...]:
    """Return a column for every field of a dataclass of ours, in its order."""
    hints = typing.get_type_hints(record)
    meanings = _field_docstrings(record)
    return tuple(
        Column(field.name, _arrow_type(hints[field.name]), _unit(field.name), meanings.get(field.name, ""))
        for field in dataclasses.fields(record)
    )


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the explicit Arrow schema of a table."""
    return pa.schema([(column.name, column.type) for column in columns])


def _arrow_type(annotation: Any) -> pa.DataType:
    """Map a field's annotation: `X | None` is X, `tuple[X, ...]` a list, a record a struct."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (types.UnionType, typing.Union):
        (annotation,) = (argument for argument in arguments if argument is not types.NoneType)
        return _arrow_type(annotation)
    if origin is tuple:
        return pa.list_(_arrow_type(arguments[0]))
    if origin is typing.Literal:
        return pa.string()
    if dataclasses.is_dataclass(annotation):
        return pa.struct([(column.name, column.type) for column in columns_of(typing.cast(type, annotation))])
    return _SCALARS[annotation]


def _unit(name: str) -> str:
    words = name.split("_")
    return next((_UNITS[word] for word in reversed(words) if word in _UNITS), "")


def _field_docstrings(record: type) -> dict[str, str]:
    """Return the string that stands below each field of a class, on one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = below.value if isinstance(below, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                found[field.target.id] = " ".join(text.value.split())
    return found


def _select(columns: Sequence[Column], *names: str) -> tuple[Column, ...]:
    by_name = {column.name: column for column in columns}
    return tuple(by_name[name] for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierSizing:
    """What `earlier_sizings` keeps of a candidate that was composed again with other sizes."""

    id: str
    eager_ms: float | None
    eager_ms_iqr: float | None
    eager_samples: int | None
    tensor_time_share: float | None


MEASUREMENT = columns_of(Measurement)
SCORES = ("kb_ast_similarity", "kb_nearest", "kb_operator_similarity", "kb_operator_nearest")
"""Nearness to KernelBench, in every config that has candidates."""
CANDIDATE = columns_of(Candidate)
"""Columns of `candidates.parquet`."""
OPERATOR = columns_of(Operator)
"""Columns of `operators.parquet` and of the config `operators`."""

_ID = Column("id", _TEXT, "", "sha256 of the exact UTF-8 code.")
_REASON = Column("reason", _TEXT, "", "`accepted`, or the first rule that fired (`filters/reasons.py`).")
_STAGE = Column("stage", _TEXT, "", "Stage at which the reason was found; null for accepted rows.")
_EVIDENCE = Column("evidence", _TEXT, "", "What a reader needs to believe the reason, a JSON object.")
VERDICT = (
    Column("name", _TEXT, "", "File stem, row number or id, as the user knows it."),
    _ID,
    Column("index", pa.int64(), "", "Place in the run or in the audited set, from 0."),
    Column("verdict", _TEXT, "", "`accepted`, `surplus`, `rejected` or `infrastructure`."),
    _REASON,
    _STAGE,
    _EVIDENCE,
    *MEASUREMENT,
    Column(
        "earlier_sizings", pa.list_(_arrow_type(EarlierSizing)), "",
        "Ids and eager times of the candidates whose place this one took, because they missed the window.",
    ),
)  # fmt: skip
"""Columns of `verdicts.parquet`."""

REJECTED = (
    *_select(VERDICT, "index", "id", "name", "reason", "stage", "evidence"),
    *_select(MEASUREMENT, *SCORES),
    *_select(CANDIDATE, "composer", "seed", "requested_ops"),
    Column(
        "code", _TEXT, "",
        "The task's source; null where it may not be shown: `contaminated`, `forbidden`, `side_effect`, "
        "`crashed`, or without a licence. Lone surrogates stand as their escapes.",
    ),
)  # fmt: skip
"""Columns of the config `rejected`."""

DATASET = (
    Column("ops", _TEXT, "", "Operators that ran, canonical names, always a JSON array."),
    Column("data_source", _TEXT, "", "`torch#K` for K operators, or `transformers`."),
    Column("code", _TEXT, "", "Python module with `Model`, `get_inputs()` and `get_init_inputs()`."),
    _ID,
    Column("family_id", _TEXT, "", "sha256 of the canonical form; equal where only sizes and names differ."),
    Column("op_count", pa.int64(), "", "Number of operators that ran; K of `torch#K`."),
    *_select(CANDIDATE, "requested_ops"),
    *_select(MEASUREMENT, "aten_ops"),
    Column("categories", _TEXTS, "", "Kinds of the operators, such as `convolution`, sorted."),
    Column(
        "difficulty", _TEXT, "",
        "`easy`, `medium` or `hard` by points: one for each operator after the first; for each distinct "
        "category 0 (element-wise work), 1 (such as reduction), 2 (such as convolution) or 3 (attention, "
        "recurrent); one from 20 aten calls, another from 100. Up to 1 point easy, up to 3 medium; "
        "`difficulty` in `data/labels.py`.",
    ),
    Column("split", _TEXT, "", "`train` or `validation`; no set of operators is in both."),
    *_select(
        MEASUREMENT,
        "input_shapes", "input_dtypes", "input_bytes", "output_shapes", "output_dtypes", "n_params",
        "inert_parameters", "flops", "bytes",
    ),
    Column("eager_ms", pa.float64(), "ms", "Median run time in eager mode."),
    Column("eager_ms_iqr", pa.float64(), "ms", "Interquartile range of the eager run times."),
    Column("compile_ms", pa.float64(), "ms", "Median run time under torch.compile (default mode)."),
    Column("compile_ms_iqr", pa.float64(), "ms", "Interquartile range of the compiled run times."),
    Column("timing_samples", pa.int64(), "", "Timed calls behind each median, the smaller of both."),
    *_select(MEASUREMENT, "compile_seconds", "graph_breaks", "peak_memory_mb", "train_eval_same"),
    *_select(MEASUREMENT, *SCORES),
    Column("device_name", _TEXT, "", "Device that all measurements of the row were taken on."),
    Column("driver_version", _TEXT, "", "NVIDIA driver; null on a CPU."),
    Column("cuda_version", _TEXT, "", "CUDA version of torch; null on a CPU."),
    Column("torch_version", _TEXT, "", "torch that ran the task."),
    Column("transformers_version", _TEXT, "", "Installed transformers; null without."),
    Column("tf32_matmul", pa.bool_(), "", "TF32 was allowed in matrix products."),
    Column("tf32_cudnn", pa.bool_(), "", "TF32 was allowed in cuDNN."),
    *_select(CANDIDATE, "composer", "seed", "request_hash", "source_license", "source_path"),
    *_select(CANDIDATE, "llm_mode", "prompt_version", "repair_turns"),
)  # fmt: skip
"""Columns of a dataset row (config `default`), drop-in columns of CUDA-Agent-Ops-6K first."""
