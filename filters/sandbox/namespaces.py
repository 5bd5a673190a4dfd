"""Linux namespaces without a helper program.

The server enters user, PID, mount, network, IPC and UTS namespaces once (`enter`), or bubblewrap has
done it. Each worker then gets a PID namespace (`fork_init`) and a mount namespace (`settle`) of its own:
it sees no other process, writes to no other scratch folder, and everything that it started ends with the
first process of its namespace, whatever session it is in.
"""

import os
import signal
from pathlib import Path

from filters.sandbox.devices import DEV_LINKS, device_nodes
from filters.sandbox.syscalls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_REC,
    die_with_parent,
    mount,
    set_read_only,
    setns,
    unshare,
)

_NUMBERS_LEFT = 5


def enter(scratch_root: Path) -> None:
    """Continue as a child behind a read-only file system without a network.

    Only `scratch_root` stays writable, and /dev keeps the nodes of `device_nodes`. The calling process,
    which must have one thread, only waits for the child from then on, because a process cannot enter a
    PID namespace itself. Raises OSError.
    """
    user, group = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    mount(str(scratch_root), str(scratch_root), None, MS_BIND)
    _replace_dev()
    set_read_only("/", recursive=True)
    set_read_only(str(scratch_root), on=False)
    _continue_in_child()


def leave_first_numbers() -> None:
    """Continue in a child whose process number no keeper (1) and no worker (2) has.

    Libraries that the server has loaded take a fork with their own number for no fork at all; filelock,
    for one, then refuses the next lock.
    """
    for _ in range(_NUMBERS_LEFT):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    _continue_in_child()


def _continue_in_child() -> None:
    """Return in a child only; this process waits for it and ends as it does."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(abs(os.waitstatus_to_exitcode(status)))
    die_with_parent(signal.SIGKILL)


def _replace_dev() -> None:
    nodes = [(node, os.open(node, os.O_PATH)) for node in device_nodes()]
    mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k")
    for node, descriptor in nodes:
        node.parent.mkdir(exist_ok=True)
        node.touch()
        mount(f"/proc/self/fd/{descriptor}", str(node), None, MS_BIND)
        os.close(descriptor)
    for name, target in DEV_LINKS.items():
        Path("/dev", name).symlink_to(target)


def fork_init() -> int:
    """Fork a child that is the first process of a new PID namespace; its end ends all others in there."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    child = None
    try:
        unshare(CLONE_NEWPID)
        child = os.fork()
        return child
    finally:
        if child != 0:
            setns(own, CLONE_NEWPID)  # later children start from here again
        os.close(own)


def settle(scratch_root: Path, scratch: Path) -> None:
    """In the first process: a /proc of this namespace, and only one's own scratch folder is writable."""
    unshare(CLONE_NEWNS | CLONE_NEWIPC)
    mount_proc()
    mount(str(scratch), str(scratch), None, MS_BIND)
    set_read_only(str(scratch_root))


def mount_proc() -> None:
    """Show the processes of this PID namespace in /proc, read-only."""
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    set_read_only("/proc")


def let_threads_be_named() -> None:
    """Open this process's own corner of /proc: CUDA writes its threads' names there or gives up."""
    threads = "/proc/self/task"
    mount(threads, threads, None, MS_BIND)
    set_read_only(threads, on=False)
