"""How fast tasks are compared with KernelBench's 270, on one core.

    python benchmarks/similarity.py [TASKS.parquet]

TASKS has a column `code`; default: CUDA-Agent-Ops-6K beside the project. Instruments 2 and 3 are timed on
100,000 encoded sequences (the set's own, over and over), instrument 1 and the fingerprints on a sample.
Times are CPU seconds of this one process, so that a busy machine does not change them much.
"""

import ast
import importlib
import itertools
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from composer.source_names import parse
from filters.similarity import Fingerprint, fingerprint, shipped_reference
from filters.similarity.facts import nearest_model, operator_facts
from filters.similarity.syntax_trees import Forest, ast_similarity, model_class

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "reference" / "ops6k" / "cuda_agent_ops_6k.parquet"
CANDIDATES = 100_000
SAMPLE = 1_000
PAIRS = 200
REFERENCE_IMPLEMENTATION = "continuous_eval.metrics.code.python.code_deterministic_metrics"


def seconds(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


def line(what: str, taken: float, candidates: float, pairs: int | None = None) -> None:
    rate = f"{pairs / taken:14,.0f} pairs/s" if pairs else " " * 22
    whole = taken * CANDIDATES / candidates
    how = (
        "measured"
        if candidates == CANDIDATES
        else f"from {candidates:,.0f}"
        if pairs != PAIRS
        else f"from {PAIRS} pairs"
    )
    print(f"{what:54}{rate}{whole:10.1f} s for {CANDIDATES:,} ({how})")


def main(path: Path) -> None:
    codes: list[str] = pq.read_table(path, columns=["code"])["code"].to_pylist()
    sample = random.Random(0).sample(codes, min(SAMPLE, len(codes)))
    reference = shipped_reference()
    tasks = len(reference.tasks)
    nearest_model(sample[0], reference)  # fills the reference's caches

    prints: list[Fingerprint] = []
    taken = seconds(lambda: prints.extend(fingerprint(code) for code in sample))
    line("fingerprints (canonical form, static signature)", taken, len(sample))

    taken = seconds(lambda: [nearest_model(code, reference) for code in sample])
    line("instrument 1, exact, nearest task", taken, len(sample), len(sample) * tasks)

    many = list(itertools.islice(itertools.cycle(prints), CANDIDATES))
    taken = seconds(lambda: sum(1 for _ in operator_facts(many, reference)))
    line("instruments 2 and 3 from encoded sequences, exact", taken, CANDIDATES, CANDIDATES * tasks)

    pairs = [random.Random(n).sample(sample, 2) for n in range(PAIRS)]
    models = [[ast.unparse(model_class(parse(code))) for code in pair] for pair in pairs]
    taken = seconds(lambda: [_ours(left, right) for left, right in models])
    line("instrument 1, one pair of texts at a time", taken, PAIRS / tasks, PAIRS)
    try:
        metric = importlib.import_module(REFERENCE_IMPLEMENTATION).PythonASTSimilarity()
    except ImportError:
        print("continuous-eval is not installed: no comparison with the reference implementation")
        return
    taken = seconds(lambda: [metric.compute(left, right) for left, right in models])
    line("the same with continuous-eval", taken, PAIRS / tasks, PAIRS)


def _ours(left: str, right: str) -> float:
    forest = Forest()
    return ast_similarity(forest.plant(ast.parse(left)), forest.plant(ast.parse(right)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT)
