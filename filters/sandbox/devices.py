"""The device nodes that a candidate may use; disks, terminals and kernel logs are not among them."""

from pathlib import Path

_PLAIN = ("null", "zero", "full", "random", "urandom")
_GPU = ("nvidia*", "nvidia-caps/*", "dxg")

DEV_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
"""Links that a /dev of only these nodes needs besides."""


def device_nodes() -> list[Path]:
    """Return the nodes that exist here: the harmless ones and those of NVIDIA's driver."""
    dev = Path("/dev")
    found = [dev / name for name in _PLAIN] + [node for pattern in _GPU for node in sorted(dev.glob(pattern))]
    return [node for node in found if node.is_char_device()]
