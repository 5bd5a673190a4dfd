"""The Linux calls that Python 3.11 does not offer. Each raises OSError that names the call."""

import ctypes
import os

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x4_0000

_NR_MOUNT_SETATTR = 442  # numbers from 424 on are the same on every architecture
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 0x1
_MOUNT_ATTR_NOSUID = 0x2

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x2008_0522

_libc = ctypes.CDLL(None, use_errno=True)


def syscall(name: str, number: int, *arguments: object) -> int:
    """Make a raw system call; `name` is for the error."""
    return _checked(name, _libc.syscall(ctypes.c_long(number), *arguments))


def unshare(flags: int) -> None:
    """Leave the given namespaces for new ones; a new PID namespace is for the next child."""
    _checked("unshare", _libc.unshare(flags))


def setns(descriptor: int, kind: int) -> None:
    """Enter a namespace that a descriptor stands for."""
    _checked("setns", _libc.setns(descriptor, kind))


def mount(source: str, target: str, kind: str | None, flags: int = 0, options: str | None = None) -> None:
    """mount(2)."""
    words = [None if w is None else os.fsencode(w) for w in (source, target, kind)]
    result = _libc.mount(*words, ctypes.c_ulong(flags), None if options is None else options.encode())
    _checked(f"mount {target}", result)


def set_read_only(path: str, *, on: bool = True, recursive: bool = False) -> None:
    """Change the mount at `path`, with all mounts below it if `recursive` (Linux 5.12)."""
    attributes = (ctypes.c_uint64 * 4)()  # to set, to clear, propagation, user namespace
    attributes[0] = _MOUNT_ATTR_NOSUID | (_MOUNT_ATTR_RDONLY if on else 0)
    attributes[1] = 0 if on else _MOUNT_ATTR_RDONLY
    syscall(
        f"mount_setattr {path}",
        _NR_MOUNT_SETATTR,
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(path),
        ctypes.c_uint(_AT_RECURSIVE if recursive else 0),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )


def die_with_parent(number: int) -> None:
    """Have the kernel send this signal to this process when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, number)


def set_dumpable(on: bool) -> None:
    """Let processes of the same user look into this one, or forbid it."""
    _prctl(_PR_SET_DUMPABLE, int(on))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def give_up_privileges() -> None:
    """Drop every capability, for good: no program that is executed gets one back."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _checked("capset", _libc.capset(ctypes.byref(header), ctypes.byref(nothing)))


def _prctl(option: int, argument: int) -> None:
    rest = [ctypes.c_ulong(0)] * 3
    _checked("prctl", _libc.prctl(ctypes.c_int(option), ctypes.c_ulong(argument), *rest))


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return int(result)
