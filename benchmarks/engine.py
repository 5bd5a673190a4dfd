"""Where the engine's time goes: verdicts per second, seconds per stage, how busy GPU and CPU are.

    python benchmarks/engine.py CANDIDATES.parquet [--limit N] [--workers W] [--device cuda|cpu] [--fresh]

Run it on an otherwise idle machine. The times of a stage are a worker's own and add up to more than the wall
time, since many run at once; `memory and other processes` is the wait for a share of the device's
memory, tries that were given up for it, and the repeat in another process. The candidates are taken for our
own, which share processes, unless `--fresh` gives each its own.
"""

import argparse
import dataclasses
import os
import statistics
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from composer.candidate import Candidate
from data.tasksets import read_taskset
from filters.engine import Engine
from filters.judge import judge
from filters.measurement import Measurement
from filters.policy import Policy
from filters.screening import screened
from filters.settings import FilterSettings
from filters.verdict import Verdict


class Row(NamedTuple):
    """One candidate and what became of it."""

    candidate: Candidate
    measurement: Measurement
    verdict: Verdict
    seconds: float
    """From the moment it had a worker's slot to its last fact."""


def main() -> None:
    """Run the candidates and print the tables."""
    parser = argparse.ArgumentParser(description="Verdicts per second and seconds per stage.")
    parser.add_argument("candidates", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--workers", type=int, default=0, help="0: one per core")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--fresh", action="store_true", help="a process of its own for each candidate")
    options = parser.parse_args()
    read = read_taskset(str(options.candidates))[: options.limit]
    candidates = [dataclasses.replace(candidate, origin="rules") for candidate in read]
    shared = {"candidates_per_worker": 1} if options.fresh else {}
    settings = FilterSettings(workers=options.workers, device=options.device, **shared)
    start = time.monotonic()
    with Engine(settings, Policy()) as engine:
        print(f"ready after {time.monotonic() - start:.1f} s: {engine.workers} workers, {engine.sandbox}")
        with Load(engine.device) as load:
            rows = measured(engine, candidates)
        show(rows, load, statistics.mean(card.exclusive.held_seconds for card in engine.cards))


def measured(engine: Engine, candidates: Sequence[Candidate]) -> list[Row]:
    """Measure all candidates with all workers."""

    def one(candidate: Candidate) -> Row:
        start = time.monotonic()
        measurement = screened(candidate, engine.measure(candidate))
        seconds = time.monotonic() - start
        return Row(candidate, measurement, judge(candidate, measurement, Policy()), seconds)

    with ThreadPoolExecutor(engine.workers) as pool:
        return list(pool.map(one, candidates))


class Load:
    """Samples how busy the machine is while a block runs."""

    def __init__(self, device: str) -> None:
        self._command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        self._device = device
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.gpu: list[float] = []
        """Percent of the time in which a kernel ran, once a second."""

    def __enter__(self) -> "Load":
        self._start, self._cpu = time.monotonic(), cpu_seconds()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()
        self.wall = time.monotonic() - self._start
        self.cpu = (cpu_seconds() - self._cpu) / (self.wall * len(os.sched_getaffinity(0)))

    def _sample(self) -> None:
        while self._device == "cuda" and not self._done.wait(1):
            answer = subprocess.run(self._command, capture_output=True, text=True, check=True).stdout
            self.gpu.append(float(answer.split()[0]))


def cpu_seconds() -> float:
    """Return the seconds that all cores together have worked since the machine started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    idle = int(fields[3]) + int(fields[4])
    return (sum(map(int, fields[:8])) - idle) / os.sysconf("SC_CLK_TCK")


def show(rows: Sequence[Row], load: Load, alone_seconds: float) -> None:
    """Print verdicts, stages and load; `alone_seconds` is for how long one worker had a card to itself."""
    print(dict(Counter(str(row.verdict.reason) for row in rows)))
    busy = f"{statistics.mean(load.gpu):.0f} %" if load.gpu else "none"
    print(f"{len(rows)} verdicts in {load.wall:.1f} s: {len(rows) / load.wall:.2f}/s; ", end="")
    print(f"GPU busy {busy}, CPU busy {load.cpu:.0%}, one alone {alone_seconds / load.wall:.0%}")
    seconds: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        known = row.measurement
        for stage, spent in zip(known.stages_done, known.stage_seconds or (), strict=True):
            seconds[stage].append(spent)
        seconds["start"].append(known.start_seconds or 0)
        own = sum(known.stage_seconds or ()) + (known.start_seconds or 0)
        seconds["memory and other processes"].append(row.seconds - own)
        seconds["all"].append(row.seconds)
    print(f"{'stage':28} rows   median      90 %      sum")
    for stage, each in seconds.items():
        decile = statistics.quantiles(each, n=10)[-1] if len(each) > 1 else each[0]
        print(f"{stage:28} {len(each):4} {statistics.median(each):8.2f} {decile:9.2f} {sum(each):8.1f}")


if __name__ == "__main__":
    main()
