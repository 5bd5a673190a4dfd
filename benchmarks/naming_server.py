"""A confined process that answers which names of torch tasks call; see `seen_names.py`.

Started as `python benchmarks/naming_server.py CONFINEMENT SECONDS`: confines itself, then answers each JSON
text on a line of standard input with a line: `{"seen": [...]}` or `{"fault": "..."}`. Each task runs in a
child of its own, for as many seconds at most. TMPDIR has to lie where the confinement lets it write.
"""

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from filters.sandbox import namespaces
from filters.sandbox.confinement import Confinement

_ANSWER_BYTES_MAX = 1 << 20


def main() -> None:
    """Answer line by line until standard input ends."""
    confinement, seconds = Confinement.from_json(sys.argv[1]), int(sys.argv[2])
    confinement.confine_server()  # first: torch brings threads along
    from seen_names import load_for_all

    load_for_all()
    for line in sys.stdin:
        print(_answer(json.loads(line), confinement, seconds), flush=True)


def _answer(code: str, confinement: Confinement, seconds: int) -> str:
    """Run a task in a confined child of its own and return what it says, or how it ended."""
    scratch = Path(tempfile.mkdtemp(dir=confinement.scratch_root))
    reading, writing = os.pipe()
    child = (namespaces.fork_init if confinement.namespaces else os.fork)()
    if child == 0:
        os.close(reading)
        _work(code, confinement, scratch, seconds, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read(_ANSWER_BYTES_MAX)
    _, status = os.waitpid(child, 0)
    if status:
        return json.dumps({"fault": f"ended with {os.waitstatus_to_exitcode(status)}"})
    try:
        return json.dumps(json.loads(said))
    except ValueError:
        return json.dumps({"fault": "no answer"})


def _work(code: str, confinement: Confinement, scratch: Path, seconds: int, writing: int) -> None:
    """In the child: never returns."""
    from seen_names import names_called

    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        confinement.confine_keeper(scratch)
        os.environ["TMPDIR"] = tempfile.tempdir = str(scratch)
        os.chdir(scratch)
        confinement.confine_worker(scratch)
        said: dict[str, object] = {"seen": names_called(code)}
    except BaseException as error:  # told to whoever asked; nothing may unwind into the server's frames
        said = {"fault": f"{type(error).__name__}: {error}"[:500]}
    os.write(writing, json.dumps(said).encode())
    os._exit(0)


if __name__ == "__main__":
    main()
