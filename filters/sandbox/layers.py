"""Which layer of confinement works here, which one is taken, and why no better one."""

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from filters.errors import SandboxFault
from filters.sandbox import bubblewrap
from filters.sandbox.confinement import Confinement
from filters.sandbox.devices import device_nodes

LayerName = Literal["bubblewrap", "namespaces", "landlock", "none"]
LAYERS: tuple[LayerName, ...] = ("bubblewrap", "namespaces", "landlock", "none")
"""From the strongest to the weakest."""

_TRIAL_SECONDS = 60
_PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One way to confine candidates, as tried on this machine."""

    name: LayerName
    means: frozenset[str] = frozenset()
    """What confines each worker: `namespaces`, `landlock`, `seccomp`."""
    why_not: str | None = None
    """Why this layer cannot be used here; None if it can."""

    def confinement(self, scratch_root: Path) -> Confinement:
        """Return what the worker server has to do."""
        return Confinement(
            scratch_root=scratch_root,
            enter=self.name == "namespaces",
            namespaces="namespaces" in self.means,
            landlock="landlock" in self.means,
            seccomp="seccomp" in self.means,
        )

    def prefix(self, scratch_root: Path) -> list[str]:
        """Return the words to put before the server's command line."""
        if self.name != "bubblewrap":
            return []
        return bubblewrap.command(scratch_root, own_proc="namespaces" not in self.means)

    def describe(self) -> str:
        """Return the name with its means: `bubblewrap (namespaces, landlock, seccomp)`."""
        further = sorted(self.means - {self.name})
        return f"{self.name} ({', '.join(further)})" if further else self.name


def usable(wanted: Literal["auto"] | LayerName) -> tuple[Layer, ...]:
    """Return the layers to take, the strongest first. Raises SandboxFault if the wanted one does not work."""
    layers = survey()
    if wanted == "auto":
        return tuple(layer for layer in layers if layer.why_not is None)
    layer = layers[LAYERS.index(wanted)]
    if layer.why_not is not None:
        raise SandboxFault(
            f"the sandbox {wanted} does not work here: {layer.why_not}. Use another one, or `auto`."
        )
    return (layer,)


@cache
def survey() -> tuple[Layer, ...]:
    """Try every layer, the strongest first; takes about a second, once per process."""
    with tempfile.TemporaryDirectory(prefix="opweaver-trial-") as folder:
        root = Path(folder).resolve()
        plain = Layer(name="none")
        layers: tuple[Layer, ...] = (_bubblewrap(root), *_own_layers(root))
        if (
            any(node.name.startswith("nvidia") for node in device_nodes())
            and _without_cuda(plain, root) is None
        ):
            layers = tuple(_tried_with_cuda(layer, root) for layer in layers)
        return *layers, plain


def _tried_with_cuda(layer: Layer, root: Path) -> Layer:
    if layer.why_not is not None:
        return layer
    why_not = _without_cuda(layer, root)
    return layer if why_not is None else replace(layer, why_not=f"CUDA does not start in it: {why_not}")


def _without_cuda(layer: Layer, root: Path) -> str | None:
    """Return why CUDA does not start in this layer, None if it does."""
    try:
        return _run([*layer.prefix(root), *_python("cuda_trial"), layer.confinement(root).to_json()])
    except OSError as error:
        return str(error)


def _own_layers(root: Path) -> tuple[Layer, Layer]:
    outcomes = _trial([], root, "enter")
    means = _working(outcomes)
    missing = [f"{name}: {outcomes[name]}" for name in ("landlock", "seccomp") if name not in means]
    return (
        Layer(name="namespaces", means=means, why_not=outcomes["namespaces"]),
        Layer(name="landlock", means=means - {"namespaces"}, why_not="; ".join(missing) or None),
    )


def _bubblewrap(root: Path) -> Layer:
    """Prefer the form in which each worker gets namespaces inside those of bubblewrap."""
    try:
        means = _working(_trial(bubblewrap.command(root, own_proc=False), root, "entered"))
        if "namespaces" not in means:
            means = _working(_trial(bubblewrap.command(root, own_proc=True), root, "entered"))
    except OSError as error:
        return Layer(name="bubblewrap", why_not=str(error))
    return Layer(name="bubblewrap", means=means)


def _working(outcomes: dict[str, str | None]) -> frozenset[str]:
    return frozenset(name for name, why_not in outcomes.items() if why_not is None)


def _trial(prefix: list[str], root: Path, mode: str) -> dict[str, str | None]:
    outcomes: dict[str, str | None] = _run([*prefix, *_python("trial"), str(root), mode])
    return outcomes


def _python(module: str) -> list[str]:
    return [sys.executable, "-m", f"filters.sandbox.{module}"]


def _run(command: list[str]) -> Any:
    """Return what a trial prints. Raises OSError with its last words if that is no answer."""
    finished = subprocess.run(
        command, cwd=_PROJECT, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_SECONDS
    )
    if finished.returncode != 0:
        last_words = finished.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise OSError(last_words[0] if last_words else f"exit status {finished.returncode}")
    return json.loads(finished.stdout)
