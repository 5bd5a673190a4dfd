"""A lifted layer: its text, and the sizes at which it can stand as a task."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ops_crawler.lifting.library import family_of

LICENSE = "Apache-2.0"
"""Of the transformers library, and so of every text here; files under another one are set aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One tensor that the forward takes."""

    name: str
    kind: str
    """`normal`, `unit` (0 to 1), `signed` (-1 to 1), `mask` (0 or least float), `bool`, `int`, `constant`, or
    `rows`: a constant that is repeated for every part of the batch."""
    dtype: str
    shape: tuple[int, ...]
    """For a batch of one."""
    batch_axes: tuple[int, ...] = ()
    """Axes that grow with the batch."""
    high: int = 0
    """Exclusive bound of `int`."""
    values: str = ""
    """Of a `constant`, as a literal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one forward does, by aten operator: calls, bytes moved, floating-point operations."""

    batch: int
    work: Mapping[str, tuple[int, int, int]]
    tensor_bytes: int
    """The largest tensor."""
    peak_bytes: int
    """Inputs, and the operands and results of the call that has most of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """One setting of the constructor's arguments, with the inputs that fit it."""

    name: str
    """`small`: the default configuration made narrow; `full`: the library's widths."""
    arguments: tuple[str, ...]
    """Of the constructor, as literals, in the order of the layer's parameters."""
    inputs: tuple[Input, ...]
    costs: tuple[Cost, ...] = ()
    """At two batches, between and beyond which everything is taken as linear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftedLayer:
    """One class of transformers that stands alone and gives the bits of the original."""

    module: str
    name: str
    """Of the class; its text calls it `Model`."""
    digest: str
    """Of the closure, see `Closure.digest`."""
    library_version: str
    copyright: tuple[str, ...]
    """Copyright lines of the files that the text has definitions from; some files have none."""
    text: str
    """Imports and definitions; the class `Model` comes last."""
    parameters: tuple[str, ...]
    """Of the constructor."""
    scales: tuple[Scale, ...]

    @property
    def path(self) -> str:
        """The file of the library, as its repository has it."""
        return "src/" + self.module.replace(".", "/") + ".py"

    @property
    def family(self) -> str:
        """The model family."""
        return family_of(self.module)


def layer_to_dict(layer: LiftedLayer) -> dict[str, Any]:
    """Return the layer as mappings and lists."""
    return asdict(layer)


def layer_from(fields: Mapping[str, Any]) -> LiftedLayer:
    """Return the layer whose fields were stored as mappings and lists."""
    return LiftedLayer(
        **{
            **fields,
            "copyright": tuple(fields["copyright"]),
            "parameters": tuple(fields["parameters"]),
            "scales": tuple(_scale(scale) for scale in fields["scales"]),
        }
    )


def _scale(fields: Mapping[str, Any]) -> Scale:
    return Scale(
        name=fields["name"],
        arguments=tuple(fields["arguments"]),
        inputs=tuple(_input(one) for one in fields["inputs"]),
        costs=tuple(_cost(one) for one in fields["costs"]),
    )


def _input(fields: Mapping[str, Any]) -> Input:
    return Input(**{**fields, "shape": tuple(fields["shape"]), "batch_axes": tuple(fields["batch_axes"])})


def _cost(fields: Mapping[str, Any]) -> Cost:
    return Cost(**{**fields, "work": {name: tuple(figures) for name, figures in fields["work"].items()}})
