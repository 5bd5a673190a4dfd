"""The processes that lift: per core one with transformers and one without, each module's two in turn."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ops_crawler.lifting.kept import Results
from ops_crawler.lifting.server import PROCESS_BYTES, READY, RESULTS

_ENDED = "the process ended"
_LANE_BYTES = PROCESS_BYTES + 2**29
"""Most memory of a lane: one of its processes at work, the other one waiting."""


class LiftingError(RuntimeError):
    """A process that lifts does not start. The message is one line; raised by `outcomes`."""


def outcomes(
    jobs: Mapping[str, Sequence[str]], seconds: float, patience: float
) -> Iterator[tuple[str, Results]]:
    """Yield each module with what became of its classes; as many at once as cores and memory allow.

    `seconds` limits each module on either side; `patience` multiplies the limits for its models. Raises
    `LiftingError`.
    """
    if not jobs:
        return
    lanes = min(len(jobs), len(os.sched_getaffinity(0)), max(1, _memory_bytes() // _LANE_BYTES))
    with tempfile.TemporaryDirectory(prefix="opweaver-lifting-") as folder, ThreadPoolExecutor(lanes) as pool:
        idle: SimpleQueue[_Lane] = SimpleQueue()
        opened = [_Lane(Path(folder)) for _ in range(lanes)]
        for lane in opened:
            idle.put(lane)
        try:
            running = [pool.submit(_in_lane, idle, *job, seconds, patience) for job in jobs.items()]
            for finished in as_completed(running):
                yield finished.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for lane in opened:
                lane.close()


def _memory_bytes() -> int:
    """Return the memory of this machine, or of the container in which this runs."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    file = Path("/sys/fs/cgroup/memory.max")
    limit = file.read_text(encoding="ascii").strip() if file.is_file() else "max"
    return whole if limit == "max" else min(whole, int(limit))


def _in_lane(
    idle: "SimpleQueue[_Lane]", module: str, names: Sequence[str], seconds: float, patience: float
) -> tuple[str, Results]:
    lane = idle.get()
    try:
        return module, lane.lift(module, names, seconds, patience)
    finally:
        idle.put(lane)


class _Lane:
    """The two processes that work on one module after the other: the originals' and the extracts'."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sides = [_Side("original"), _Side("extract")]

    def lift(self, module: str, names: Sequence[str], seconds: float, patience: float) -> Results:
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            job = {
                "module": module, "names": names, "folder": folder, "seconds": seconds, "patience": patience
            }  # fmt: skip
            for side in self.sides:
                said = side.ask(job)
                if said != "done":
                    reason = "time_limit" if said == "time_limit" else "original_fails"
                    return [{"name": name, "reason": reason, "detail": f"{module}: {said}"} for name in names]
            results: Results = json.loads((Path(folder) / RESULTS).read_text(encoding="utf-8"))
            return results

    def close(self) -> None:
        """End both processes, whatever they are at."""
        for side in self.sides:
            side.close()


class _Side:
    """A process that is started when it is first asked, and once more where it ended by itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.process: subprocess.Popen[str] | None = None

    def ask(self, job: Mapping[str, Any]) -> str:
        """Return how a job ended, on one line."""
        if self.process is None or self.process.poll() is not None:
            self.process = _started(self.name)
        asked, answers = self.process.stdin, self.process.stdout
        assert asked is not None
        assert answers is not None
        try:
            asked.write(json.dumps(job) + "\n")
            asked.flush()
        except BrokenPipeError:
            return _ENDED
        return answers.readline().strip() or _ENDED

    def close(self) -> None:
        if self.process is not None:
            self.process.terminate()
            with contextlib.suppress(BrokenPipeError):  # what was asked and never read
                self.process.communicate()


def _started(side: str) -> "subprocess.Popen[str]":
    """Return a process that has loaded what its side needs. Raises `LiftingError`."""
    root = Path(__file__).resolve().parents[2]
    paths = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [sys.executable, "-m", "ops_crawler.lifting.server", side],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
    )
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    if said != READY:
        process.wait()
        raise LiftingError(f"the process of the {side}s does not start: {said or _ENDED}")
    return process
