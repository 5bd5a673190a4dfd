"""A process that has loaded what its side needs and forks a child for every family.

`python -m ops_crawler.lifting.server original` imports transformers, `... extract` cannot. Each line on
stdin is a job as JSON; each line on stdout says how the job of that place ended.
"""

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from ops_crawler.source import one_line


def main() -> None:
    """Serve until stdin ends."""
    side = sys.argv[1]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the library prints is no answer
    if side == "original":
        from ops_crawler.lifting.original import prepare

        prepare()
    else:
        from ops_crawler.lifting import extract

        extract.prepare()
    for line in sys.stdin:
        answers.write(_in_child(side, json.loads(line)) + "\n")


def _in_child(side: str, job: dict[str, Any]) -> str:
    """Return `done`, `time_limit` or what went wrong, on one line."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(reader)
        try:
            _work(side, job)
            said = "done"
        except Exception as error:
            said = one_line(error)
        os.write(writer, said.encode()[:1000])
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], job["seconds"])
    said = os.read(reader, 1000).decode(errors="replace") if ready else "time_limit"
    os.close(reader)
    if not ready:
        _kill(child)
    os.waitpid(child, 0)
    return said or "died"


def _kill(child: int) -> None:
    for target in (os.killpg, os.kill):
        try:
            target(child, signal.SIGKILL)
        except ProcessLookupError:
            time.sleep(0)


def _work(side: str, job: dict[str, Any]) -> None:
    recorded = Path(job["recorded"])
    if side == "original":
        from ops_crawler.lifting.original import record

        record(job["module"], job["names"], recorded, job["patience"])
    else:
        from ops_crawler.lifting.extract import check

        results = check(recorded, recorded.parent)
        recorded.with_suffix(".json").write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
