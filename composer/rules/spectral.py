"""Fourier transforms. Complex results become real at once: by size or by real part."""

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import BATCHED, Call, CallDrawer, Rule, along_one, rule
from composer.values import (
    ALTERNATING,
    ALTERNATING_MEAN,
    KEPT,
    MAGNITUDES,
    MEAN_MAGNITUDES,
    Transfer,
)

_PLANES = ("NCHW", "NLF", "NCDHW")
_LINE = along_one()


def _plane(draft: Draft, running: Running) -> Call:
    return Call(args=(X,), axes=running.layout[-2:])


def _several(draft: Draft, running: Running) -> Call:
    """All axes but the batch."""
    numbers: tuple[Argument, ...] = tuple(range(1, len(running.layout)))
    return Call(args=(X,), kwargs=(("dim", numbers),), axes=running.layout[1:])


def _fft(name: str, call: CallDrawer, layouts: tuple[str, ...], transfer: Transfer, suffix: str = "") -> Rule:
    """No half types: few devices transform them, and lengths must be powers of two."""
    return rule(f"torch.fft.{name}", layouts, call, transfer=transfer, suffix=suffix, half=False)


def _shift(name: str) -> Rule:
    return rule(f"torch.fft.{name}", BATCHED, _LINE, transfer=KEPT, pins=("order",), exact=True)


RULES = (
    _fft("fft", _LINE, BATCHED, ALTERNATING, ".real"),
    _fft("fft2", _plane, _PLANES, MAGNITUDES, ".abs()"),
    _fft("fftn", _several, BATCHED, ALTERNATING, ".real"),
    _fft("hfft", _LINE, BATCHED, ALTERNATING),
    _fft("ifft", _LINE, BATCHED, ALTERNATING_MEAN, ".real"),
    _fft("ifft2", _plane, _PLANES, MEAN_MAGNITUDES, ".abs()"),
    _fft("ihfft", _LINE, BATCHED, ALTERNATING_MEAN, ".real"),
    _fft("irfft", _LINE, BATCHED, ALTERNATING_MEAN),
    _fft("rfft", _LINE, BATCHED, MAGNITUDES, ".abs()"),
    _fft("rfft2", _plane, _PLANES, MAGNITUDES, ".abs()"),
    _fft("rfftn", _several, BATCHED, MAGNITUDES, ".abs()"),
    _shift("fftshift"),
    _shift("ifftshift"),
)
