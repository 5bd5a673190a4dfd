"""How the entries of an input are drawn: as source text, as a sample of values, as a range."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import torch
from torch import Tensor

from composer.plan import Input
from composer.values import SAMPLE, UNBOUNDED, normal, uniform


@dataclass(frozen=True, slots=True)
class Draw:
    """One way to draw entries."""

    text: str
    """Source with `{shape}` (names with commas), `{below}` and `{dtype}` (empty or a keyword argument)."""
    sample: Callable[[int], Tensor]
    """Number of the sample to a sample (see `composer.values`)."""
    bounds: tuple[float, float] = UNBOUNDED
    dtype: torch.dtype | None = None
    """None: the floating dtype of the layer."""


def _signs(number: int) -> Tensor:
    return normal(number).sign()


DRAWS: Mapping[str, Draw] = MappingProxyType(
    {
        "normal": Draw("torch.randn({shape}{dtype})", normal),
        "unit": Draw("torch.rand({shape}{dtype})", uniform, (0.0, 1.0)),
        "positive": Draw("torch.rand({shape}{dtype}) + 0.5", lambda n: uniform(n) + 0.5, (0.5, 1.5)),
        "signs": Draw("torch.sign(torch.randn({shape}{dtype}))", _signs, (-1.0, 1.0)),
        "mask": Draw("torch.rand({shape}) < 0.6", lambda n: uniform(n) < 0.6, dtype=torch.bool),
        "indices": Draw(
            "torch.randint(0, {below}, ({shape}))", lambda n: torch.arange(SAMPLE), dtype=torch.int64
        ),
        "permutation": Draw("torch.randperm({shape})", lambda n: torch.arange(SAMPLE), dtype=torch.int64),
    }
)


def dtype_of(tensor: Input) -> torch.dtype:
    """Return the dtype of an input."""
    return DRAWS[tensor.drawn].dtype or getattr(torch, tensor.dtype)


def drawn_text(tensor: Input) -> str:
    """Return the source that draws an input."""
    dtype = "" if tensor.dtype == "float32" else f", dtype=torch.{tensor.dtype}"
    shape = ", ".join(tensor.shape)
    if tensor.drawn == "indices" and len(tensor.shape) == 1:
        shape += ","
    return DRAWS[tensor.drawn].text.format(shape=shape, below=tensor.below, dtype=dtype)
