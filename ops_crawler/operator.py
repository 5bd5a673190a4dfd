"""One operator of a library, and how it is called."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["module", "function"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an operator's call (of the constructor, for a module)."""

    name: str
    required: bool
    default: str | None = None
    """`repr` of the default, or None where the parameter is required."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A public callable of torch (or of another source) that a layer can be built from."""

    name: str
    """Dotted public name, such as `torch.nn.functional.gelu`."""
    kind: Kind
    """A class to construct and then call, or a function."""
    signature: str
    """`inspect.signature` as text, or `unknown` where the library does not tell."""
    parameters: tuple[Parameter, ...] = ()
    """Empty where the signature is unknown."""
    summary: str = ""
    """First paragraph of the docstring."""
    source: str = "torch"
    """Name of the source that yielded it."""
    library_version: str = ""
    """Version of the library that holds it."""
