"""A system-call filter: no network, no looking into other processes, no change to mounts or the kernel.

Written as classic BPF by hand (x86-64 and aarch64), so that no package is needed. What is refused fails
with EPERM, as it would for a user without the right; `clone3` fails with ENOSYS, because its flags lie in
memory where a filter cannot look, and the C library then falls back to `clone`.
"""

import ctypes
import errno
import os
import platform
import socket
import struct
from dataclasses import dataclass

from filters.sandbox.syscalls import syscall

_SET_MODE_FILTER = 1
_FLAG_SPEC_ALLOW = 1 << 2
"""Keep speculation as it is: older kernels slow down filtered processes, and their times count here."""

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF_0000, 0x0005_0000
_AT_NUMBER, _AT_ARCH, _AT_ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_X32_NUMBERS = 0x4000_0000
_NEW_NAMESPACES = 0x7E02_0000  # every CLONE_NEW* flag that clone knows
_REFUSE = (_RETURN, 0, 0, _ERRNO | errno.EPERM)

# Names with their numbers on (x86-64, aarch64); from 424 on the numbers are the same everywhere.
_REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "connect": (42, 203),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
}
_REFUSED_TO_OTHERS = {
    "kill": (62, 129),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "prlimit64": (302, 261),
}
"""Their first argument is a process; 0 means the caller's own."""
_REFUSED_ALWAYS_TO_OTHERS = {"tkill": (200, 130), "pidfd_send_signal": (424, 424)}
_SOCKET, _SOCKETPAIR, _CLONE, _CLONE3 = (41, 198), (53, 199), (56, 220), (435, 435)

Instruction = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Machine:
    arch: int  # AUDIT_ARCH_*
    column: int


_MACHINES = {"x86_64": _Machine(0xC000_003E, 0), "aarch64": _Machine(0xC000_00B7, 1)}


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def restrict(*, signals: bool) -> None:
    """Install the filter for this process and all descendants. Raises OSError.

    signals: also refuse to signal other processes, where no PID namespace hides them.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, f"seccomp: no filter for {platform.machine()}")
    code = b"".join(struct.pack("=HBBI", *instruction) for instruction in _program(machine, signals))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(buffer))
    syscall(
        "seccomp",
        {"x86_64": 317, "aarch64": 277}[platform.machine()],
        ctypes.c_uint(_SET_MODE_FILTER),
        ctypes.c_uint(_FLAG_SPEC_ALLOW),
        ctypes.byref(program),
    )


def _program(machine: _Machine, signals: bool) -> list[Instruction]:
    """Return the filter; every test is followed by what to do, so that no jump is far."""
    refused = dict(_REFUSED)
    if signals:
        refused |= _REFUSED_ALWAYS_TO_OTHERS
    program = [
        (_LOAD, 0, 0, _AT_ARCH),
        (_EQUAL, 1, 0, machine.arch),
        _REFUSE,
        (_LOAD, 0, 0, _AT_NUMBER),
        (_AT_LEAST, 0, 1, _X32_NUMBERS),
        _REFUSE,
    ]
    for numbers in refused.values():
        program += [(_EQUAL, 0, 1, numbers[machine.column]), _REFUSE]
    program += [(_EQUAL, 0, 1, _CLONE3[machine.column]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
    program += _unless(_CLONE[machine.column], 0, [(_ANY_BIT, 0, 1, _NEW_NAMESPACES)])
    # CUDA listens on a local stream socket; without `connect` that reaches nobody, a packet socket would
    packets = [(_LOAD, 0, 0, _argument(1)), (_AND, 0, 0, 0xF), (_EQUAL, 0, 1, socket.SOCK_DGRAM)]
    for numbers in (_SOCKET, _SOCKETPAIR):
        program += _unless(numbers[machine.column], 0, [(_EQUAL, 0, 3, socket.AF_UNIX), *packets])
    if signals:
        for numbers in _REFUSED_TO_OTHERS.values():
            own = [(_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, os.getpid())]
            program += _unless(numbers[machine.column], 0, own)
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def _unless(number: int, argument: int, tests: list[Instruction]) -> list[Instruction]:
    """For one call: load the low half of an argument; the tests jump over the refusal or fall into it."""
    then = [(_LOAD, 0, 0, _argument(argument)), *tests, _REFUSE, (_RETURN, 0, 0, _ALLOW)]
    return [(_EQUAL, 0, len(then), number), *then]


def _argument(position: int) -> int:
    """Return the offset of the low half of an argument."""
    return _AT_ARGUMENTS + 8 * position
