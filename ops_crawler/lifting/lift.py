"""Lift every layer class of the installed transformers, several families at once."""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ops_crawler.lifting.closures import all_layer_classes, closure_of
from ops_crawler.lifting.kept import Kept, Results
from ops_crawler.lifting.lifted import LiftedLayer, layer_from
from ops_crawler.lifting.reasons import NotLiftedError

FAMILY_SECONDS = 120.0
"""Limit for one modeling module on either side."""
_TRIED_PER_CLOSURE = 3
"""Classes of one closure that are tried; the first that succeeds, in the order of modules, stands for all."""

Name = tuple[str, str]
"""Module and class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why one class is not lifted."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifting:
    """What became of every layer class of the library."""

    layers: tuple[LiftedLayer, ...]
    """One for each closure that could be lifted, sorted by module and name."""
    refusals: Mapping[Name, Refusal]
    """All other classes."""


@cache
def closures() -> tuple[dict[Name, str], dict[Name, Refusal]]:
    """Return the digest of each layer class's closure, and the classes that have none."""
    digests: dict[Name, str] = {}
    refusals: dict[Name, Refusal] = {}
    for name in all_layer_classes():
        try:
            digests[name] = closure_of(*name).digest
        except NotLiftedError as error:
            refusals[name] = Refusal(reason=error.reason, detail=error.detail)
    return digests, refusals


def lift(
    advance: Callable[[int, int], None] = lambda done, total: None,
    only: str = "",
    kept: Kept | None = None,
) -> Lifting:
    """Return all layers; `advance` is told after each module, `only` limits to modules that contain it.

    What is in `kept` is not done again, and what is done is put there.
    """
    digests, unread = closures()
    jobs = {module: names for module, names in jobs_of(digests).items() if only in module}
    found = lift_classes(jobs, advance, kept=kept)
    layers: list[LiftedLayer] = []
    refusals = {name: refusal for name, refusal in unread.items() if only in name[0]}
    for names in _by_closure(digests):
        outcomes = [found[name] for name in names if name in found]
        first = next((one for one in outcomes if isinstance(one, LiftedLayer)), None)
        layers += [first] if first else []
        refusals |= _refused(names, found, first) if outcomes else {}
    ordered = sorted(layers, key=lambda layer: (layer.module, layer.name))
    return Lifting(layers=tuple(ordered), refusals=dict(sorted(refusals.items())))


def jobs_of(digests: Mapping[Name, str]) -> dict[str, list[str]]:
    """Return the classes that are tried, by module: a few of each closure."""
    jobs: dict[str, list[str]] = defaultdict(list)
    tried = {name for names in _by_closure(digests) for name in names[:_TRIED_PER_CLOSURE]}
    for module, cls in sorted(tried):
        jobs[module].append(cls)
    return dict(jobs)


def _by_closure(digests: Mapping[Name, str]) -> list[list[Name]]:
    classes: dict[str, list[Name]] = defaultdict(list)
    for name, digest in digests.items():
        classes[digest].append(name)
    return list(classes.values())


def _refused(
    names: Sequence[Name], found: Mapping[Name, LiftedLayer | Refusal], first: LiftedLayer | None
) -> dict[Name, Refusal]:
    """Return why the classes of one closure, but for the layer that stands for it, are not listed."""
    if first:
        same = Refusal(reason="same_closure", detail=f"{first.module}.{first.name}")
        return {name: same for name in names if name != (first.module, first.name)}
    said = {name: one for name in names if isinstance(one := found.get(name), Refusal)}
    last = next(iter(said.values()))
    return {name: said.get(name, last) for name in names}


def lift_classes(
    jobs: Mapping[str, list[str]],
    advance: Callable[[int, int], None] = lambda done, total: None,
    seconds: float = FAMILY_SECONDS,
    kept: Kept | None = None,
    patience: float = 1.0,
) -> dict[Name, LiftedLayer | Refusal]:
    """Return what becomes of these classes, given by module.

    `seconds` limits each module on either side; `patience` multiplies the limits for its models.
    """
    found: dict[Name, LiftedLayer | Refusal] = {}
    waiting = dict(jobs)
    for module, names in jobs.items():
        results = kept.get(module, names) if kept else None
        if results is not None:
            found |= {(module, one["name"]): _outcome(one) for one in results}
            del waiting[module]
    for module, results in _outcomes(waiting, seconds, patience):
        if kept:
            kept.put(module, jobs[module], results)
        found |= {(module, one["name"]): _outcome(one) for one in results}
        del waiting[module]
        advance(len(jobs) - len(waiting), len(jobs))
    return found


def _outcome(fields: Mapping[str, Any]) -> LiftedLayer | Refusal:
    if "layer" in fields:
        return layer_from(fields["layer"])
    return Refusal(reason=fields["reason"], detail=fields["detail"])


def _outcomes(
    jobs: Mapping[str, list[str]], seconds: float, patience: float
) -> Iterator[tuple[str, Results]]:
    """Yield each module with what became of its classes; as many at once as there are cores."""
    lanes = len(os.sched_getaffinity(0))
    lanes = min(lanes, len(jobs))
    if not jobs:
        return
    with tempfile.TemporaryDirectory(prefix="opweaver-lifting-") as folder, ThreadPoolExecutor(lanes) as pool:
        idle: SimpleQueue[_Lane] = SimpleQueue()
        opened = [_Lane(Path(folder)) for _ in range(lanes)]
        for lane in opened:
            idle.put(lane)
        try:
            running = [pool.submit(_in_lane, idle, *job, seconds, patience) for job in list(jobs.items())]
            for finished in as_completed(running):
                yield finished.result()
        finally:
            pool.shutdown(cancel_futures=True)
            for lane in opened:
                lane.close()


def _in_lane(
    idle: "SimpleQueue[_Lane]", module: str, names: list[str], seconds: float, patience: float
) -> tuple[str, Results]:
    lane = idle.get()
    try:
        return module, lane.lift(module, names, seconds, patience)
    finally:
        idle.put(lane)


class _Lane:
    """Two processes that work on one family after the other: the originals' and the extracts'."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sides = [_start("original"), _start("extract")]

    def lift(self, module: str, names: list[str], seconds: float, patience: float) -> Results:
        recorded = self.folder / f"{module.replace('.', '_')}.pt"
        job = {
            "module": module,
            "names": names,
            "recorded": str(recorded),
            "seconds": seconds,
            "patience": patience,
        }
        for side in self.sides:
            said = _ask(side, job)
            if said != "done":
                reason = "time_limit" if said == "time_limit" else "original_fails"
                return [{"name": name, "reason": reason, "detail": f"{module}: {said}"} for name in names]
        results: Results = json.loads(recorded.with_suffix(".json").read_text(encoding="utf-8"))
        for file in self.folder.glob(f"{recorded.stem}*"):
            file.unlink()
        return results

    def close(self) -> None:
        for side in self.sides:
            side.stdin.close()  # type: ignore[union-attr]
            side.wait()


def _start(side: str) -> "subprocess.Popen[str]":
    root = Path(__file__).resolve().parents[2]
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", "ops_crawler.lifting.server", side],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )


def _ask(side: "subprocess.Popen[str]", job: Mapping[str, Any]) -> str:
    assert side.stdin is not None
    assert side.stdout is not None
    side.stdin.write(json.dumps(job) + "\n")
    side.stdin.flush()
    return side.stdout.readline().strip() or "the process ended"


def counts(refusals: Iterable[Refusal]) -> dict[str, int]:
    """Return how many classes have each reason."""
    found: dict[str, int] = defaultdict(int)
    for refusal in refusals:
        found[refusal.reason] += 1
    return dict(sorted(found.items(), key=lambda each: -each[1]))
