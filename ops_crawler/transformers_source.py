"""Layer classes of the installed transformers, checked against the frozen layers.

The library's files are read, not imported: a class whose closure is that of a frozen layer is listed as
usable, whatever its version. `opweaver crawl --source transformers --verify` runs all of them again.
"""

from collections.abc import Iterator, Mapping

from ops_crawler.lifting.frozen import frozen
from ops_crawler.lifting.library import library_version
from ops_crawler.lifting.lift import Name, Refusal, closures
from ops_crawler.lifting.lifted import LiftedLayer
from ops_crawler.operator import Operator, Parameter


class TransformersSource:
    """Yields every layer class; those that are not lifted have a reason."""

    def operators(self) -> Iterator[Operator]:
        """Yield the classes by module. Raises `SourceError` where transformers is not installed."""
        version = library_version()
        digests, refusals = closures()
        layers, known = frozen().by_digest, frozen().refusals
        standing = _standing(digests, layers)
        for name in sorted({*digests, *refusals}):
            layer = layers.get(digests.get(name, ""))
            if layer is not None:
                yield _lifted(name, layer, version, stands=name in standing)
            else:
                refusal = refusals.get(name) or known.get(name) or Refusal(reason="not_frozen", detail="")
                reason = refusal.reason if refusal.reason != "same_closure" else "not_frozen"
                yield _operator(name, version, set_aside=reason)


def _standing(digests: Mapping[Name, str], layers: Mapping[str, LiftedLayer]) -> set[Name]:
    """Return the class that is listed for each layer: its own, or where that is gone the first like it."""
    chosen: dict[str, Name] = {}
    for name, digest in sorted(digests.items()):
        layer = layers.get(digest)
        if layer is not None and (digest not in chosen or name == (layer.module, layer.name)):
            chosen[digest] = name
    return set(chosen.values())


def _lifted(name: Name, layer: LiftedLayer, version: str, *, stands: bool) -> Operator:
    """Return a class that has the closure of a layer, which its alias group names."""
    return _operator(
        name,
        version,
        set_aside=None if stands else "same_closure",
        alias_group=f"{layer.module}.{layer.name}",
        parameters=tuple(
            Parameter(name=parameter, required=False, default=value)
            for parameter, value in zip(layer.parameters, layer.scales[0].arguments, strict=True)
        ),
    )


def _operator(
    name: Name,
    version: str,
    *,
    set_aside: str | None,
    alias_group: str = "",
    parameters: tuple[Parameter, ...] = (),
) -> Operator:
    full = ".".join(name)
    return Operator(
        name=full,
        kind="module",
        signature=f"({', '.join(one.name for one in parameters)})" if parameters else "unknown",
        parameters=parameters,
        category="layer",
        alias_group=alias_group or full,
        set_aside=set_aside,
        source="transformers",
        library_version=version,
    )
