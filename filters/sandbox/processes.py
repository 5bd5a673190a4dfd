"""What runs below a process, read from /proc."""

import os
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def descendants(pid: int) -> list[int]:
    """Return the children of a process, their children and so on; those that end meanwhile may be missing."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        children = _children(waiting.pop())
        found += children
        waiting += children
    return found


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for thread in _threads(pid):
        try:
            children += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
        except OSError:
            continue  # the thread has ended
    return children


def _threads(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def thread_count(pid: int) -> int:
    """Return the number of threads, 0 if the process is not there (any more)."""
    return len(_threads(pid))


def resident_bytes(pid: int, *, private: bool = False) -> int:
    """Return the resident size, 0 if the process is not there; `private` leaves out mapped files."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_bytes().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared) * private) * _PAGE_BYTES
