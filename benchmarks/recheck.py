"""Whether rows of a dataset pass all checks again, and take as long as they say.

    python benchmarks/recheck.py data/opweaver-6k [--rows 200] [--seed 0] [--device cuda]

Run it on a fresh start of a machine with the device of the rows. A release was made with limits of time
somewhat inside the usual ones, which count here. Exit status 1 where more than 0.5 % of the verdicts changed,
or more than 5 % of the eager times by more than 10 %.
"""

import argparse
import dataclasses
import random
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from engine import Row, measured

from data.tasksets import read_taskset
from filters.engine import Engine
from filters.policy import Policy
from filters.reasons import Reason
from filters.settings import FilterSettings

CHANGED_MAX = 0.005
APART = 0.10
APART_MAX = 0.05


def main() -> int:
    """Measure a sample, print what changed; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    options = parser.parse_args()
    candidates = read_taskset(str(options.folder))
    sample = random.Random(options.seed).sample(candidates, min(options.rows, len(candidates)))
    ours = [dataclasses.replace(candidate, origin="rules") for candidate in sample]
    with Engine(FilterSettings(device=options.device), Policy()) as engine:
        print(f"measured again on {engine.environment.device_name}")
        found = measured(engine, ours)
    return report(found, _published(options.folder))


def _published(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the measured columns of the rows by their ids."""
    tables = (pq.read_table(path) for path in sorted((folder / "data").glob("*.parquet")))
    return {row["id"]: row for table in tables for row in table.to_pylist()}


def report(found: Sequence[Row], published: Mapping[str, Mapping[str, Any]]) -> int:
    """Print the table of both measurements; return the exit status."""
    changed = [row for row in found if row.verdict.reason is not Reason.ACCEPTED]
    for row in changed:
        print(f"{row.candidate.id[:12]}  now {row.verdict.reason}  {row.verdict.evidence}")
    print(f"{len(found) - len(changed)} of {len(found)} rows keep their verdict")
    worst = len(changed) > CHANGED_MAX * len(found)
    for column in ("eager_ms", "compile_ms"):
        factors = _factors(found, published, column)
        apart = sum(abs(factor - 1) > APART for factor in factors)
        low, *_, high = statistics.quantiles(factors, n=20)
        print(
            f"{column:10}  now / then: median {statistics.median(factors):.3f}, "
            f"5 % {low:.3f}, 95 % {high:.3f}; {len(factors) - apart} of {len(factors)} within {APART:.0%}"
        )
        worst |= column == "eager_ms" and apart > APART_MAX * len(factors)
    return int(worst)


def _factors(found: Sequence[Row], published: Mapping[str, Mapping[str, Any]], column: str) -> list[float]:
    """Return the new time over the published one, of each row that has both."""
    times = ((getattr(row.measurement, column), published[row.candidate.id][column]) for row in found)
    return [now / then for now, then in times if now and then]


if __name__ == "__main__":
    sys.exit(main())
