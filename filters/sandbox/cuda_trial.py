"""Tries whether CUDA starts in a process that is confined exactly as a worker.

Started as `python -m filters.sandbox.cuda_trial CONFINEMENT`; prints one JSON value: why not, or null. The
driver gives up over small things, such as a local socket or a name in /proc that it may not write.
"""

import ctypes
import json
import os
import sys
import tempfile
from pathlib import Path

from filters.sandbox import namespaces
from filters.sandbox.confinement import Confinement
from filters.sandbox.syscalls import set_dumpable
from filters.sandbox.trial import outcome_in_child


def main() -> None:
    """Go the way of a worker: server, keeper, worker."""
    confinement = Confinement.from_json(sys.argv[1])
    scratch = Path(tempfile.mkdtemp(dir=confinement.scratch_root))
    confinement.confine_server()

    def keeper() -> None:
        confinement.confine_keeper(scratch)
        set_dumpable(False)
        why_not = outcome_in_child(worker, os.fork)
        if why_not is not None:
            raise OSError(why_not)

    def worker() -> None:
        set_dumpable(True)
        confinement.confine_worker(scratch)
        _start_cuda()

    fork = namespaces.fork_init if confinement.namespaces else os.fork
    print(json.dumps(outcome_in_child(keeper, fork)))


def _start_cuda() -> None:
    code = ctypes.CDLL("libcuda.so.1").cuInit(0)
    if code != 0:
        raise OSError(f"cuInit gives error {code}")


if __name__ == "__main__":
    main()
