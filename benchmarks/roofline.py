"""Predicted against measured eager time of rule-composed layers, by operator, on the machine at hand.

    python benchmarks/roofline.py --count 60 [--profile FILE|cpu|h200] [--device cpu|cuda] [--seed S]
    python benchmarks/roofline.py --run RUN_DIR        a run that was measured already; times nothing

Factors are predicted / measured. A layer counts for each of its operators.
"""

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from composer.profiles import BUILT_IN, profile_for, read_profile
from composer.rule_composer import RuleComposer
from data.files import read_candidates, read_verdicts
from filters.calibration import LayerClock
from ops_crawler.crawl import crawl


class Layer(NamedTuple):
    """One layer that was predicted and measured."""

    operators: tuple[str, ...]
    predicted_ms: float
    measured_ms: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Predicted against measured eager time, by operator.")
    parser.add_argument("--run", type=Path, help="folder of a run")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--profile", default="auto", help="auto, cpu, h200 or a file")
    options = parser.parse_args()
    layers = list(of_run(options.run) if options.run else timed(options))
    by_operator: dict[str, list[Layer]] = defaultdict(list)
    for layer in layers:
        for operator in set(layer.operators):
            by_operator[operator].append(layer)
    print(f"{'operator':48} layers  factor   quartiles")
    for operator, own in sorted(by_operator.items()):
        print(line(operator, own))
    print(line("all layers", layers))
    within = sum(1 / 1.5 <= layer.predicted_ms / layer.measured_ms <= 1.5 for layer in layers)
    print(
        f"within a factor 1.5: {within / len(layers):.0%}; measured in 1 to 100 ms: {in_window(layers):.0%}"
    )


def timed(options: argparse.Namespace) -> Iterator[Layer]:
    """Compose layers and time them."""
    named = options.profile in ("auto", *BUILT_IN)
    profile = profile_for(options.profile if named else read_profile(Path(options.profile)), options.device)
    composer, clock = RuleComposer(crawl(), profile, options.seed), LayerClock(options.device)
    for index in range(options.count):
        candidate = composer.compose(index)
        assert candidate.predicted_ms is not None
        yield Layer(candidate.requested_ops, candidate.predicted_ms, clock.seconds(candidate.code) * 1e3)


def of_run(folder: Path) -> Iterator[Layer]:
    """Read what a run predicted and measured; earlier sizings are left out."""
    candidates = {candidate.id: candidate for candidate in read_candidates(folder / "candidates.parquet")}
    for row in read_verdicts(folder / "verdicts.parquet"):
        candidate, measured_ms = candidates[row.verdict.id], row.measurement.eager_ms
        if measured_ms is not None and candidate.predicted_ms is not None:
            yield Layer(candidate.requested_ops, candidate.predicted_ms, measured_ms)


def line(title: str, layers: Sequence[Layer]) -> str:
    """Return count, median and quartiles of the factor."""
    factors = sorted(layer.predicted_ms / layer.measured_ms for layer in layers)
    low, median, high = statistics.quantiles(factors, n=4) if len(factors) > 1 else factors * 3
    return f"{title:48} {len(factors):6} {median:7.2f}   {low:.2f} to {high:.2f}"


def in_window(layers: Sequence[Layer]) -> float:
    """Return the share of layers that run long enough and not too long."""
    return sum(1 <= layer.measured_ms <= 100 for layer in layers) / len(layers)


if __name__ == "__main__":
    main()
