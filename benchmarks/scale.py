"""What the driver of a large run costs: ledger, repeats and merge, with recorded rows instead of execution.

    python benchmarks/scale.py [--candidates 10000 100000 1000000] [--gpus 1 8 64 256] [--folder DIR]

Everything that the driver does with a candidate but composing it and writing the Parquet files: store it,
take its measurement and verdict in batches as they come from a cluster (`RATE` a second from each GPU, taken
every 0.3 s), and after each round judge the whole ledger and look for what to measure next. Candidates are
distinct texts made from a pool of real ones, their facts those of one real row of each, so a share of
them repeats others. Time passes in the books only: `verdicts/s` is what the GPUs give, and what the driver
could give at most is 100 / `CPU`.
"""

import argparse
import dataclasses
import random
import resource
import tempfile
import time
from array import array
from collections import Counter
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from composer.candidate import Candidate
from composer.profiles import CPU
from composer.rule_composer import RuleComposer
from data.ledger import Ledger
from data.ledger_layout import JudgedRecord, verdict_text
from filters.environment import Environment
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Verdict
from flows.judging import judge_ledger, judged_record
from flows.resizing import misses
from flows.rounds import FIRST_ROUND_MAX
from flows.settings import Settings
from ops_crawler.crawl import crawl

RATE = 2.0
"""Verdicts a second from one GPU."""
POOL = 100
TAKE_SECONDS = 0.3
HERE = Environment(
    device_name="recorded", driver_version=None, cuda_version=None, torch_version="2",
    compile_backend="inductor", transformers_version=None, tf32_matmul=False, tf32_cudnn=False, threads=1,
)  # fmt: skip


class Row(NamedTuple):
    """A recorded row: what a shard tells of one candidate."""

    candidate: Candidate
    measurement: str
    judged: JudgedRecord


class Result(NamedTuple):
    """One line of the table."""

    candidates: int
    gpus: int
    cpu_seconds: float
    peak_bytes: int
    ledger_bytes: int
    accepted: int
    repeats: int


def main() -> None:
    """Measure each size in a process of its own and print the table."""
    parser = argparse.ArgumentParser(description="Cost of the driver.")
    parser.add_argument("--candidates", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 8, 64, 256])
    parser.add_argument("--folder", type=Path, help="where the ledgers lie; default: a temporary folder")
    options = parser.parse_args()
    columns = "candidates", "GPUs", "verdicts/s", "CPU per 100 verdicts", "peak memory", "ledger"
    print("|", " | ".join([*columns, "accepted", "repeats"]), "|")
    print("|---|---|---|---|---|---|---|---|")
    for count in options.candidates:
        for gpus in options.gpus:
            with (
                tempfile.TemporaryDirectory(dir=options.folder) as folder,
                get_context("spawn").Pool(1) as pool,
            ):
                show(pool.apply(measured, (Path(folder), count, gpus)))


def show(result: Result) -> None:
    """Print one line."""
    cpu = 100 * result.cpu_seconds / result.candidates
    print(
        f"| {result.candidates:,} | {result.gpus} | {RATE * result.gpus:,.0f} | {cpu * 1e3:.0f} ms "
        f"({cpu:.1%} of a core at 100/s) | {result.peak_bytes / 1e6:,.0f} MB "
        f"| {result.ledger_bytes / 1e6:,.0f} MB | {result.accepted:,} | {result.repeats:,} |",
        flush=True,
    )


def measured(folder: Path, count: int, gpus: int) -> Result:
    """Take a whole run through one driver, in rounds as `flows.rounds` plans them."""
    pool = pool_of_rows()
    settings = Settings(run={"count": count})
    batch = max(1, round(RATE * gpus * TAKE_SECONDS))
    making = began = time.process_time()
    made = 0.0
    with Ledger.open(folder / "ledger.sqlite") as ledger:
        done = 0
        while done < count:
            size = min(max(FIRST_ROUND_MAX, done), count - done)
            for start in range(done, done + size, 5_000):
                making = time.process_time()
                rows = [row_at(index, pool) for index in range(start, min(start + 5_000, done + size))]
                made += time.process_time() - making
                take(ledger, rows, batch)
            done += size
            judge_ledger(ledger, [HERE], settings)
            misses(ledger.each_candidate(), ledger.each_verdict(), count)
        reasons = Counter(verdict.reason for verdict in ledger.each_verdict())
    spent = time.process_time() - began - made
    size = sum(path.stat().st_size for path in folder.iterdir())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Result(count, gpus, spent, peak, size, reasons[Reason.ACCEPTED], reasons[Reason.DUPLICATE])


def take(ledger: Ledger, rows: list[Row], batch: int) -> None:
    """Store candidates, then what shards tell of them, as `flows.cluster.cluster` does."""
    ledger.add_candidates([row.candidate for row in rows])
    for start in range(0, len(rows), batch):
        told = rows[start : start + batch]
        ledger.put_records([(row.candidate.id, HERE.key, False, row.measurement) for row in told])
        ledger.keep_judged([row.judged for row in told])


def pool_of_rows() -> list[Row]:
    """Return real candidates of our rules with the facts of an accepted row."""
    composer = RuleComposer(crawl(), CPU, seed=0)
    return [recorded(composer.compose(index)) for index in range(POOL)]


def recorded(candidate: Candidate) -> Row:
    """Return a candidate as if it had been measured and accepted."""
    measurement = Measurement(
        stages_done=("build", "conduct", "repeatability", "output", "degenerate", "labels", "runtime"),
        wall_seconds=9.5, stage_seconds=(1.0,) * 7, kb_ast_similarity=0.61, kb_nearest="level1/19_ReLU",
        kb_operator_similarity=0.53, kb_operator_nearest="level2/7_Conv3d", input_shapes=((128, 64, 32),),
        input_dtypes=("float32",), input_bytes=1 << 20, n_params=4096, output_shapes=((128, 64, 32),),
        output_dtypes=("float32",), peak_memory_mb=123.4, ops=candidate.requested_ops,
        signature=candidate.requested_ops, aten_ops=tuple(f"aten.op{n}.default" for n in range(8)),
        output_digest="0" * 64, aten_nodes=12, flops=10**9, bytes=10**8, eager_ms=3.2, eager_ms_iqr=0.1,
        eager_samples=30, compile_ms=2.1, compile_ms_iqr=0.1, compile_samples=30, compile_seconds=4.0,
        eager_error=1e-7, compiled_error=1e-7, allowed_error=1e-5, compared_with="fp64",
    )  # fmt: skip
    verdict = Verdict(index=candidate.index, id=candidate.id, outcome="accepted", reason=Reason.ACCEPTED)
    judged = judged_record(candidate, measurement, verdict, HERE.key, Policy())
    assert judged is not None  # it is accepted
    return Row(candidate, measurement.to_json(), judged)


def row_at(index: int, pool: list[Row]) -> Row:
    """Return row `index` of the set: text, family, signature and sequence of its own, unless it repeats one.

    One in twenty has the family of an earlier one; otherwise a hundred thousand signatures are shared by all.
    """
    of = pool[index % len(pool)]
    draw = random.Random(index)
    candidate = dataclasses.replace(of.candidate, index=index, code=f"{of.candidate.code}# {index}\n")
    family = f"{draw.randrange(index) if index and draw.random() < 0.05 else index}"
    sequence = array("I", of.judged.sequence)
    for place in range(0, len(sequence), 4):
        sequence[place] = draw.getrandbits(32)
    judged = of.judged._replace(
        id=candidate.id,
        verdict=verdict_text(
            Verdict(index=index, id=candidate.id, outcome="accepted", reason=Reason.ACCEPTED)
        ),
        family=family,
        signature=f"{of.judged.signature}\n{draw.randrange(1_000)}",
        sequence=sequence.tobytes(),
    )
    return Row(candidate, of.measurement, judged)


if __name__ == "__main__":
    main()
