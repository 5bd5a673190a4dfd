"""The frozen layers: what one version of transformers gave, with every text that was checked.

`python -m ops_crawler.lifting.build` writes the file. Reading it needs neither transformers nor torch. The
texts in it are the library's (Apache License 2.0, see NOTICE); each carries file, version and copyright.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ops_crawler.lifting.lift import Lifting, Name, Refusal, closures, jobs_of, lift_classes
from ops_crawler.lifting.lifted import LICENSE, LiftedLayer, layer_from, layer_to_dict

FILE = Path(__file__).with_name("layers.json.gz")
LAYOUT = 1
"""Version of the file's layout."""
PATIENCE = 4.0
"""By how much the limits of time are multiplied for the frozen file, and before a layer is said to differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """All layer classes of one version of transformers."""

    library_version: str
    layers: tuple[LiftedLayer, ...]
    refusals: Mapping[Name, Refusal]

    @property
    def by_digest(self) -> dict[str, LiftedLayer]:
        """The layers by the digest of their closure."""
        return {layer.digest: layer for layer in self.layers}


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """In what a lifting differs from the frozen one: names of classes, sorted."""

    new: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]
    """Lifted both times, with another text, notice or other sizes."""
    refused: tuple[str, ...]
    """No layers now, but layers in the frozen file."""
    gained: tuple[str, ...] = ()
    """Layers now, but refused in the frozen file."""

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changed or self.refused or self.gained)


@cache
def frozen() -> Frozen:
    """Return the layers that come with this version."""
    stored = json.loads(gzip.decompress(FILE.read_bytes()))
    return Frozen(
        library_version=stored["library_version"],
        layers=tuple(layer_from(fields) for fields in stored["layers"]),
        refusals={
            (module, name): Refusal(reason=reason, detail=detail)
            for module, name, reason, detail in stored["refusals"]
        },
    )


def freeze(lifting: Lifting, library_version: str) -> bytes:
    """Return the file for a lifting; the same lifting gives the same bytes."""
    stored: dict[str, Any] = {
        "layout": LAYOUT,
        "license": LICENSE,
        "library_version": library_version,
        "layers": [layer_to_dict(layer) for layer in lifting.layers],
        "refusals": [[*name, refusal.reason, refusal.detail] for name, refusal in lifting.refusals.items()],
    }
    text = json.dumps(stored, sort_keys=True, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def changes(lifting: Lifting) -> Changes:
    """Compare a lifting with the frozen one."""
    before = {f"{layer.module}.{layer.name}": layer for layer in frozen().layers}
    after = {f"{layer.module}.{layer.name}": layer for layer in lifting.layers}
    known = {*before, *(".".join(name) for name in frozen().refusals)}
    refused = {".".join(name) for name in lifting.refusals}
    return Changes(
        new=tuple(sorted(after.keys() - known)),
        gone=tuple(sorted(before.keys() - after.keys() - refused)),
        changed=tuple(
            sorted(n for n in before.keys() & after.keys() if _content(before[n]) != _content(after[n]))
        ),
        refused=tuple(sorted(before.keys() & refused)),
        gained=tuple(sorted((after.keys() - before.keys()) & known)),
    )


def unconfirmed(found: Changes) -> Changes:
    """Return the changes that stay where the models of their families get more time.

    Limits of time cut some large models short on one machine and not on another.
    """
    before = {f"{layer.module}.{layer.name}": layer for layer in frozen().layers}
    modules = {name.rpartition(".")[0] for name in (*found.changed, *found.refused)}
    jobs = {module: names for module, names in jobs_of(closures()[0]).items() if module in modules}
    tried = lift_classes(jobs, patience=PATIENCE)
    again = {".".join(name): one for name, one in tried.items()}
    equal = {
        name
        for name, one in again.items()
        if isinstance(one, LiftedLayer) and name in before and _content(one) == _content(before[name])
    }
    return replace(
        found,
        changed=tuple(name for name in found.changed if name not in equal),
        refused=tuple(name for name in found.refused if name not in equal),
    )


def _content(layer: LiftedLayer) -> tuple[Any, ...]:
    """What two liftings of one class must agree in; the version of the library is none of it."""
    return layer.digest, layer.copyright, layer.text, layer.parameters, layer.scales
