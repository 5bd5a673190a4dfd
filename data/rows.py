"""From a judged candidate to the rows that are published."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from composer.candidate import Candidate
from composer.canonical import family_id
from data.labels import categories, difficulty, split_of
from data.schema import DATASET, MEASUREMENT, SCORES
from filters.environment import Environment
from filters.measurement import Measurement
from filters.reasons import Reason
from filters.verdict import Verdict

NEVER_SHOWN = frozenset({Reason.CONTAMINATED, Reason.FORBIDDEN, Reason.SIDE_EFFECT, Reason.CRASHED})
"""Reasons whose rows are published without code: benchmark text, or text that may do harm where it runs."""

_MEASURED = {column.name for column in DATASET} & {column.name for column in MEASUREMENT} - {"ops"}


def dataset_row(candidate: Candidate, measurement: Measurement, environment: Environment) -> dict[str, Any]:
    """Return the row of an accepted candidate, in the order of the schema, as part of the split train.

    Raises ValueError for a candidate that was accepted without its operators being known, which is a bug.
    """
    if measurement.ops is None:
        raise ValueError(f"candidate {candidate.index} has no operators")
    whole_layer = candidate.data_source == "transformers"
    ops = candidate.requested_ops if whole_layer else measurement.ops
    samples = [n for n in (measurement.eager_samples, measurement.compile_samples) if n is not None]
    values = {
        "ops": json.dumps(ops),
        "data_source": "transformers" if whole_layer else f"torch#{len(ops)}",
        "code": candidate.code,
        "id": candidate.id,
        "family_id": family_id(candidate.code),
        "op_count": len(measurement.ops),
        "categories": categories(measurement.ops),
        "difficulty": difficulty(measurement.ops, measurement.aten_nodes),
        "split": "train",
        "timing_samples": min(samples, default=None),
        "device_name": environment.device_name,
        "driver_version": environment.driver_version,
        "cuda_version": environment.cuda_version,
        "torch_version": environment.torch_version,
        "transformers_version": environment.transformers_version,
        "tf32_matmul": environment.tf32_matmul,
        "tf32_cudnn": environment.tf32_cudnn,
        "requested_ops": candidate.requested_ops,
        "composer": candidate.composer,
        "seed": candidate.seed,
        "request_hash": candidate.request_hash,
        "llm_mode": candidate.llm_mode,
        "prompt_version": candidate.prompt_version,
        "repair_turns": candidate.repair_turns,
        "source_license": candidate.source_license,
        "source_path": candidate.source_path,
        **{name: getattr(measurement, name) for name in _MEASURED},
    }
    return {column.name: values[column.name] for column in DATASET}


def rejected_row(candidate: Candidate, verdict: Verdict, measurement: Measurement | None) -> dict[str, Any]:
    """Return the row of a rejected candidate; its code only where that may be shown."""
    shown = verdict.reason not in NEVER_SHOWN and is_licensed(candidate)
    return {
        "index": verdict.index,
        "id": verdict.id,
        "name": candidate.name,
        "reason": verdict.reason,
        "stage": verdict.stage,
        "evidence": json.dumps(verdict.evidence),
        **{name: getattr(measurement, name, None) for name in SCORES},
        "composer": candidate.composer,
        "seed": candidate.seed,
        "requested_ops": candidate.requested_ops,
        "code": candidate.code if shown else None,
    }


def is_licensed(candidate: Candidate) -> bool:
    """Return whether the text may be passed on: written for this set, or taken over with a known licence."""
    return _has_licence(dataclasses.asdict(candidate))


def without_licence(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the ids of the rows whose text comes from somebody else and has no known licence."""
    return [row["id"] for row in rows if not _has_licence(row)]


def _has_licence(row: Mapping[str, Any]) -> bool:
    ours = row["composer"] and not row["source_path"] and row["data_source"] != "transformers"
    return bool(ours or row["source_license"])


def with_splits(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a whole dataset with their splits set."""
    return [{**row, "split": split_of(json.loads(row["ops"]), len(rows))} for row in rows]
