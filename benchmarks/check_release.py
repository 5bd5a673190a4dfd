"""Whether a dataset folder keeps what a release promises, looked at from outside.

    python benchmarks/check_release.py data/opweaver-6k [--rows 6000]

Reads the Parquet files as a user would, computes everything again, and runs every task once more, confined,
to see whether the operators of its label are called (`seen_names.py`). Prints a line for each promise and,
for a broken one, the first rows that break it; exit status 1 if there is any.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from composer.canonical import family_id
from filters.operators import canonical_name
from filters.sandbox.layers import usable
from filters.similarity.facts import fingerprint, operator_facts
from filters.similarity.reference import shipped_reference

WINDOW_MS = (1.15, 87.0)
ARITIES = {2: 5026, 3: 457, 4: 168, 5: 74}
"""Rows of CUDA-Agent-Ops-6K with so many operators."""
ARITY_POINTS = 2.0
BASELINE = (
    "eager_ms",
    "compile_ms",
    "eager_ms_iqr",
    "compile_ms_iqr",
    "timing_samples",
    "device_name",
    "torch_version",
)
SECONDS_PER_TASK = 120
PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")
SHOWN = 5

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Promise:
    """One line of the table."""

    what: str
    found: str
    wanted: str
    kept: bool
    breaking: Sequence[str] = ()
    """Ids of rows that break it."""


def counted(what: str, breaking: Iterable[str]) -> Promise:
    """Return a promise that no row may break."""
    ids = list(breaking)
    return Promise(what, str(len(ids)), "0", not ids, ids)


def promises(rows: Sequence[Row], wanted_rows: int) -> Iterator[Promise]:
    """Yield what can be told without running a task."""
    yield Promise("rows", f"{len(rows):,}", f"{wanted_rows:,}", len(rows) == wanted_rows)
    yield counted("exact duplicates", _repeated(rows, lambda row: row["code"].strip()))
    yield counted("canonical duplicates", _repeated(rows, lambda row: family_id(row["code"])))
    yield counted("ids that are not the digest of the code", _wrong_ids(rows))
    yield counted("rows with a KernelBench signature", _benchmark_rows(rows))
    yield counted("rows without a whole baseline", (row["id"] for row in rows if _lacks_baseline(row)))
    low, high = WINDOW_MS
    yield counted(
        f"rows outside [{low}, {high}] ms", (r["id"] for r in rows if not low <= r["eager_ms"] <= high)
    )
    yield counted("operator sets on both sides of the split", _on_both_sides(rows))
    yield from _shares(rows)


def _repeated(rows: Sequence[Row], key: Any) -> Iterator[str]:
    met = set()
    for row in rows:
        if (value := key(row)) in met:
            yield row["id"]
        met.add(value)


def _wrong_ids(rows: Sequence[Row]) -> Iterator[str]:
    return (row["id"] for row in rows if hashlib.sha256(row["code"].encode()).hexdigest() != row["id"])


def _benchmark_rows(rows: Sequence[Row]) -> Iterator[str]:
    facts = operator_facts([fingerprint(row["code"]) for row in rows], shipped_reference())
    return (row["id"] for row, found in zip(rows, facts, strict=True) if found["kb_signature_match"])


def _lacks_baseline(row: Row) -> bool:
    return any(row[name] is None for name in BASELINE)


def _on_both_sides(rows: Sequence[Row]) -> Iterator[str]:
    sides: dict[frozenset[str], str] = {}
    for row in rows:
        if sides.setdefault(frozenset(json.loads(row["ops"])), row["split"]) != row["split"]:
            yield row["id"]


def _shares(rows: Sequence[Row]) -> Iterator[Promise]:
    composed = [json.loads(row["ops"]) for row in rows if row["data_source"] != "transformers"]
    uses = Counter(name for names in composed for name in names)
    name, most = uses.most_common(1)[0]
    share = most / uses.total()
    yield Promise("distinct operators", str(len(uses)), "200 or more", len(uses) >= 200)
    yield Promise(f"largest share of the uses ({name})", f"{share:.2%}", "4 % or less", share <= 0.04)
    layers = len(rows) - len(composed)
    yield Promise("rows from transformers", str(layers), "300 or more", layers >= 300)
    narrow = sum("bfloat16" in str(row["input_dtypes"]) for row in rows) / len(rows)
    yield Promise("bfloat16", f"{narrow:.1%}", "5 % or more", narrow >= 0.05)
    found = Counter(len(names) for names in composed)
    total = sum(found[arity] for arity in ARITIES) or 1
    for arity, original in ARITIES.items():
        share, aim = 100 * found[arity] / total, 100 * original / sum(ARITIES.values())
        kept = abs(share - aim) <= ARITY_POINTS
        yield Promise(f"{arity} operators, of those with 2 to 5", f"{share:.1f} %", f"{aim:.1f} % +- 2", kept)
    single, easy = found[1], sum(row["difficulty"] == "easy" for row in rows)
    yield Promise("single operators; easy rows", f"{single}; {easy}", "reported", True)


def unseen_labels(rows: Sequence[Row], processes: int) -> Promise:
    """Run every task once more, confined, and count the labels that are not called."""
    parts = [rows[start::processes] for start in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        answers = list(pool.map(_answers, parts))
    breaking = [
        f"{row['id']}: {answer.get('fault') or ', '.join(missing)}"
        for part, said in zip(parts, answers, strict=True)
        for row, answer in zip(part, said, strict=True)
        if (missing := _missing(row, answer)) or "fault" in answer
    ]
    return counted("labels that another execution does not see", breaking)


def _missing(row: Row, answer: dict[str, Any]) -> set[str]:
    seen = {canonical_name(name) or name for name in answer.get("seen", ())}
    return {name for name in json.loads(row["ops"]) if name not in seen and canonical_name(name) not in seen}


def _answers(rows: Sequence[Row]) -> list[dict[str, Any]]:
    layer = usable("auto")[0]
    if layer.name == "none":
        raise SystemExit("check_release: no sandbox works here, so no task is run; see `opweaver doctor`")
    with tempfile.TemporaryDirectory(prefix="opweaver-") as folder:
        root = Path(folder).resolve()
        server = str(Path(__file__).with_name("naming_server.py"))
        words = [*layer.prefix(root), sys.executable, server, layer.confinement(root).to_json()]
        done = subprocess.run(
            [*words, str(SECONDS_PER_TASK)],
            input="".join(json.dumps(row["code"]) + "\n" for row in rows),
            env={name: os.environ[name] for name in PASSED_ON if name in os.environ} | {"TMPDIR": str(root)},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=6000)
    options = parser.parse_args()
    files = sorted((options.folder / "data").glob("*.parquet"))
    if not files:
        parser.error(f"{options.folder}/data: no Parquet files; give the folder of a dataset")
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    broken = 0
    processes = len(os.sched_getaffinity(0))
    for promise in (*promises(rows, options.rows), unseen_labels(rows, processes)):
        mark = "ok" if promise.kept else "BROKEN"
        print(f"{mark:7}{promise.what:50}{promise.found:>12}  wanted {promise.wanted}")
        broken += not promise.kept
        for id in promise.breaking[:SHOWN]:
            print(f"       {id}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
