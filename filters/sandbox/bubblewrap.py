"""bubblewrap (`bwrap`): a small, widely reviewed program that sets up namespaces, where it is installed."""

import shutil
from pathlib import Path

from filters.sandbox.devices import DEV_LINKS, device_nodes


def command(scratch_root: Path, *, own_proc: bool) -> list[str]:
    """Return the words to put in front of a command line. Raises OSError if there is no `bwrap`.

    own_proc: hide the processes outside. Off where each worker mounts a /proc of its own, which the
    kernel allows only while the outer one is visible as a whole.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise OSError("bwrap is not installed")
    # not `--dev`: for its terminals bwrap makes a second user namespace, which owns none of the others
    words = [program, "--ro-bind", "/", "/", "--tmpfs", "/dev"]
    for node in device_nodes():
        words += ["--dev-bind", str(node), str(node)]
    for name, target in DEV_LINKS.items():
        words += ["--symlink", target, f"/dev/{name}"]
    words += ["--remount-ro", "/dev", "--bind", str(scratch_root), str(scratch_root)]
    words += ["--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    words += ["--die-with-parent"]
    # its own namespaces' CAP_SYS_ADMIN lets the server give each worker namespaces inside these
    words += ["--proc", "/proc"] if own_proc else ["--cap-add", "CAP_SYS_ADMIN"]
    return [*words, "--"]
