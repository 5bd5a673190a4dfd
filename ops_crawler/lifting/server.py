"""A process that has loaded what its side needs and forks a child for every family.

`python -m ops_crawler.lifting.server original` imports transformers, `... extract` cannot. Each line on
stdin is a job as JSON; each line on stdout says how the job of that place ended.
"""

import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from ops_crawler.source import one_line

PROCESS_BYTES = 2 * 2**30
"""Most memory that a process may hold of its own; a model that needs more is as one that does not run."""
RESULTS = "results.json"
"""File in a job's folder with what became of its classes."""
READY = "ready"
"""The first line, once everything is loaded; anything else there is the reason why not."""

_ENDINGS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Serve until stdin ends."""
    side = sys.argv[1]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the library prints is no answer
    try:
        _prepare(side)
    except Exception as error:
        answers.write(one_line(error) + "\n")
        sys.exit(1)
    answers.write(READY + "\n")
    for line in sys.stdin:
        answers.write(_in_child(side, json.loads(line)) + "\n")


def _prepare(side: str) -> None:
    if side == "original":
        from ops_crawler.lifting.original import prepare
    else:
        from ops_crawler.lifting.extract import prepare
    prepare()
    gc.freeze()  # children that collect garbage leave these pages shared
    resource.setrlimit(resource.RLIMIT_DATA, (PROCESS_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def _in_child(side: str, job: dict[str, Any]) -> str:
    """Return `done`, `time_limit` or what went wrong, on one line."""
    reader, writer = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)  # until whoever is told to end knows of the child
    child = os.fork()
    if child == 0:
        _be_child(side, job, writer)
    ready = False
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
        os.close(writer)
        ready = bool(select.select([reader], [], [], job["seconds"])[0])
        said = os.read(reader, 1000).decode(errors="replace") if ready else "time_limit"
    finally:  # interrupted too: nobody else knows of the child
        if not ready:
            _kill(child)
        os.close(reader)
        os.waitpid(child, 0)
    return said or "died"


def _be_child(side: str, job: dict[str, Any], writer: int) -> NoReturn:
    """Do a job, say on the pipe how it ended, and end."""
    try:
        os.setpgid(0, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDINGS)
        try:
            _work(side, job)
            said = "done"
        except Exception as error:
            said = one_line(error)
        os.write(writer, said.encode()[:1000])
    finally:
        os._exit(0)


def _kill(child: int) -> None:
    """Kill a child and whatever it started; it may not have become a group of its own yet."""
    for target in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            target(child, signal.SIGKILL)


def _work(side: str, job: dict[str, Any]) -> None:
    folder = Path(job["folder"])
    if side == "original":
        from ops_crawler.lifting.original import record

        record(job["module"], job["names"], folder, job["patience"])
    else:
        from ops_crawler.lifting.extract import check

        results = check(folder)
        (folder / RESULTS).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
