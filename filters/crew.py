"""The workers of one engine: started for a candidate, and kept for the next where nothing happened to them.

A process on a GPU costs a second for its context, and another for kernels and compilers that load when they
are first used. So candidates of our own making, which cannot mean harm, share a process one after the
other. It is replaced as soon as one of them fails or leaves anything behind, after a number of them, and
once it has grown. Foreign candidates never share one.
"""

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filters.card import Card
from filters.compiler_cache import CompilerCache
from filters.errors import SandboxFault
from filters.sandbox.processes import resident_bytes
from filters.spawner import Child, Spawner

_GROWTH_BYTES_MAX = 3 << 30
"""Resident memory that a worker may have gained; a context and the libraries of CUDA take 1 GiB of it."""


@dataclass(eq=False, kw_only=True)
class Worker:
    """One child with its folder."""

    child: Child
    scratch: Path
    spawner: Spawner
    card: Card
    jobs: int = 0
    """Candidates that it has run."""
    unharmed: bool = False
    """Whether its last candidate came to its end and left nothing behind."""

    def end(self) -> None:
        """Kill whatever is left of it, and remove its folder."""
        self.card.exclusive.leave(self.child)
        self.child.close()
        shutil.rmtree(self.scratch, ignore_errors=True)


class Crew:
    """Starts workers, and keeps those that can go on."""

    def __init__(self, scratch_root: Path, cache: CompilerCache, jobs_max: int) -> None:
        """`jobs_max` is the number of candidates after which a worker is replaced."""
        self._scratch_root = scratch_root
        self._cache = cache
        self._jobs_max = jobs_max
        self._lock = threading.Lock()
        self._idle: list[Worker] = []

    @contextlib.contextmanager
    def worker(self, spawner: Spawner, card: Card, *, stays: bool) -> Iterator[Worker]:
        """Yield a worker for one job: one that stayed, if the job may share it, else a new one.

        Raises SandboxFault if none can be started.
        """
        worker = (self._take(spawner, card) if stays else None) or self._start(spawner, card)
        worker.unharmed = False
        kept = False
        try:
            yield worker
            worker.jobs += 1
            kept = stays and worker.unharmed and not self._worn_out(worker)
        finally:
            if kept:
                with self._lock:
                    self._idle.append(worker)
            else:
                worker.end()

    def close(self) -> None:
        """End those that wait for work."""
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def _take(self, spawner: Spawner, card: Card) -> Worker | None:
        with self._lock:
            for worker in self._idle:
                if worker.spawner is spawner and worker.card is card:
                    self._idle.remove(worker)
                    return worker
        return None

    def _start(self, spawner: Spawner, card: Card) -> Worker:
        scratch = self._new_folder()
        try:
            with (scratch / "log").open("ab") as log:
                child = spawner.spawn(scratch, log.fileno())
        except BaseException:  # Ctrl-C too: the folder is nobody's then; raised again
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        card.exclusive.enter(child)
        return Worker(child=child, scratch=scratch, spawner=spawner, card=card)

    def _new_folder(self) -> Path:
        try:
            folder = Path(tempfile.mkdtemp(dir=self._scratch_root))
            for name in ("work", "home"):
                (folder / name).mkdir()
            self._cache.copy_to(folder)
        except OSError as error:
            raise SandboxFault(
                f"{self._scratch_root}: {error.strerror}. Free some space or set TMPDIR."
            ) from error
        return folder

    def _worn_out(self, worker: Worker) -> bool:
        child = worker.child
        if child.worker_pid is None or worker.jobs >= self._jobs_max:
            return True
        return resident_bytes(child.worker_pid) - child.base_bytes > _GROWTH_BYTES_MAX
