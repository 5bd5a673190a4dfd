"""One operator of a library or of one's own, and how it is called."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["module", "function"]
Origin = Literal["opinfo", "moduleinfo", "docstring", "search"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an operator's call (of the constructor, for a module)."""

    name: str
    required: bool
    default: str | None = None
    """`repr` of the default, or None where the parameter is required."""
    keyword_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """One call that was really executed: it shows which arguments an operator takes, at tiny sizes."""

    call: str
    """JSON, see `ops_crawler.witnesses.calls`: what the call is made of, enough to make it again."""
    input_shapes: tuple[tuple[int, ...], ...]
    """Of the tensors among the arguments, in order; a module's parameters are none of them."""
    input_dtypes: tuple[str, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    output_dtypes: tuple[str, ...]
    aten_ops: tuple[str, ...]
    """Distinct aten operators that ran on the CPU, sorted."""
    differentiable: bool
    """Whether an output has a gradient with respect to an input or a parameter."""
    origin: Origin
    """Where the arguments came from: torch's own test samples, the docstring, a search over the signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How an operator of one's own stands in a layer. Tasks carry its source text; they cannot import it."""

    code: str
    """Python text that defines it and needs nothing but torch and the modules that tasks may import."""
    name: str
    """Of the class or function that `code` defines."""
    layouts: tuple[str, ...]
    """Tensors that it takes, a letter per axis: `NF`, `NLF`, `NCL`, `NCHW` (N batch, F features, L length,
    C channels, H height, W width). The result has the same axes, possibly of other sizes."""
    arguments: tuple[str, ...] = ()
    """Of the constructor, or of the function after its tensors: `F` stands for the size of that axis,
    everything else is a Python literal; `name=` in front passes it by keyword."""
    inputs: tuple[str, ...] = ()
    """Axes of further tensors that a function takes after the first one, such as `LF`."""
    runs: tuple[str, ...] = ()
    """Operators of torch that ran inside, canonical names; each of them counts as one of a task's."""
    license: str | None = None
    """Under which the code may be passed on."""


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
    shape_notes: str = ""
    """Section `Shape` of the docstring; empty without one."""
    category: str = ""
    """What it does, such as `convolution` (`ops_crawler/categories.py` lists them); else `layer`."""
    alias_group: str = ""
    """Canonical name of the operator that it is, possibly under another name."""
    set_aside: str | None = None
    """Code of the reason why no layer is built from it (`ops_crawler/reasons.py`), None where one can be."""
    detail: str = ""
    """What exactly stands in the way of an operator of one's own."""
    witness: Witness | None = None
    """An executed example call, null where none is known."""
    usage: Usage | None = None
    """How an operator of one's own stands in a layer; null for torch's, which the composer's rules know."""
    source: str = "torch"
    """Name of the source that yielded it."""
    library_version: str = ""
    """Version of the library that holds it."""


def operator_from(fields: Mapping[str, Any]) -> Operator:
    """Return the operator whose fields were stored as lists and mappings."""
    witness, usage = fields["witness"], fields["usage"]
    return Operator(
        **{
            **fields,
            "parameters": tuple(Parameter(**parameter) for parameter in fields["parameters"]),
            "witness": witness_from(witness) if witness else None,
            "usage": Usage(**_with_tuples(usage)) if usage else None,
        }
    )


def witness_from(fields: Mapping[str, Any]) -> Witness:
    """Return the witness whose fields were stored as lists."""
    return Witness(**_with_tuples(fields))


def _with_tuples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_tuples(one) for name, one in value.items()}
    return tuple(_with_tuples(one) for one in value) if isinstance(value, list) else value
