"""How far the long stages are: a bar on a terminal, else a line every few seconds. All on stderr."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from composer.candidate import Candidate
from filters.measurement import Measurement
from filters.verdict import Verdict

LINE_SECONDS = 15
"""Time between two lines where there is no terminal."""


class Progress:
    """Counts what is done in one stage at a time; may be told from many threads."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._lock = threading.Lock()
        self._bars: Bars | None = None
        self._task = TaskID(0)

    @contextmanager
    def stage(self, title: str, total: int, note: Callable[[], str] | None = None) -> Iterator[None]:
        """Show the stage for as long as the block runs, with what `note` says at the time."""
        self._title, self._total, self._note = title, total, note
        self._done = self._judged = self._accepted = 0
        self._began = self._last_line = time.monotonic()
        if not self._console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"), TimeRemainingColumn(compact=True),
        )  # fmt: skip
        with Bars(*columns, console=self._console, transient=True) as self._bars:
            self._task = self._bars.add_task(title, total=total, speed="")
            yield
        self._bars = None

    def advance(self, accepted: bool | None = None) -> None:
        """Count one more; `accepted` where it was judged."""
        with self._lock:
            self._done += 1
            self._judged += accepted is not None
            self._accepted += accepted is True
            if self._bars is not None:
                self._bars.update(self._task, advance=1, speed=self._speed())
            elif time.monotonic() - self._last_line >= LINE_SECONDS:
                self._last_line = time.monotonic()
                self._console.print(self.line(), highlight=False, soft_wrap=True)

    def judged(self, candidate: Candidate, measurement: Measurement | None, verdict: Verdict) -> None:
        """Count a candidate that was judged."""
        self.advance(accepted=verdict.outcome == "accepted")

    def _speed(self) -> str:
        text = f"{self._rate():.2g}/s"
        if self._judged:
            text += f", accepted {self._accepted} of {self._judged} ({self._accepted / self._judged:.0%})"
        return f"{text}, {self._note()}" if self._note else text

    def line(self) -> str:
        """Say how far the stage is."""
        left = (self._total - self._done) / self._rate()
        return f"{self._title}: {self._done} of {self._total}, {self._speed()}, about {duration(left)} left"

    def _rate(self) -> float:
        return self._done / max(time.monotonic() - self._began, 1e-3)


def duration(seconds: float) -> str:
    """Return a duration as people say it."""
    minutes = seconds / 60
    if minutes < 1.5:
        return f"{seconds:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
