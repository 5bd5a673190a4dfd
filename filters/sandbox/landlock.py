"""Landlock: the process itself gives up the right to write anywhere but in its scratch folder.

Needs no privilege and no namespace (Linux 5.13). Reading, running programs and device ioctls stay
unhandled, because torch, compilers and the GPU's driver need them everywhere.
"""

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path

from filters.sandbox.devices import device_nodes
from filters.sandbox.syscalls import syscall

_NR_CREATE, _NR_ADD_RULE, _NR_RESTRICT = 444, 445, 446
_VERSION_FLAG = 1
_RULE_PATH_BENEATH = 1

_WRITE_FILE = 1 << 1
_TRUNCATE = 1 << 14
_REWRITE = _WRITE_FILE | _TRUNCATE
_CHANGES = {1: _WRITE_FILE | sum(1 << bit for bit in range(4, 13)), 2: 1 << 13, 3: _TRUNCATE}
"""Rights to change files and folders by the ABI that brought them: write, remove, make; refer; truncate."""
_SCOPES = {6: 0b11}
"""Keep signals and connections to abstract sockets among the restricted processes themselves."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def restrict(writable: Iterable[Path]) -> None:
    """Forbid this process and its descendants to change anything but `writable`. Raises OSError."""
    abi = syscall("landlock", _NR_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))
    changes = _up_to(abi, _CHANGES)
    wanted = _Ruleset(files=changes, scopes=_up_to(abi, _SCOPES))
    # older kernels refuse fields that they do not know, unless they are zero
    ruleset = syscall(
        "landlock_create_ruleset",
        _NR_CREATE,
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
        ctypes.c_uint(0),
    )
    for folder in writable:
        _allow(ruleset, folder, changes)
    for node in device_nodes():
        _allow(ruleset, node, changes & _REWRITE)
    threads = Path("/proc/self/task")  # CUDA writes its threads' names there or gives up
    _allow(ruleset, threads, changes & _REWRITE)
    os.open(
        threads, os.O_PATH
    )  # stays open: /proc may forget an entry that nobody holds, and the rule with it
    syscall("landlock_restrict_self", _NR_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)


def _up_to(abi: int, rights: dict[int, int]) -> int:
    return sum(bits for since, bits in rights.items() if since <= abi)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH)
    rule = _PathBeneath(allowed=rights, parent=descriptor)
    syscall(
        "landlock_add_rule",
        _NR_ADD_RULE,
        ctypes.c_int(ruleset),
        ctypes.c_int(_RULE_PATH_BENEATH),
        ctypes.byref(rule),
        ctypes.c_uint(0),
    )
    os.close(descriptor)
