"""Mathematical functions of one tensor, element by element. Arguments are brought into their range."""

from composer.plan import Argument
from composer.rules.rule import ANY_LAYOUT, Call, Rule, plain, rule
from composer.rules.terms import ABOVE_ONE, OPEN_SHARE, POSITIVE, SMALL, within

_S = "torch.special."


def _ranged(operator: str, wanted: str, *args: Argument, first: Argument = None, **options: object) -> Rule:
    """`first` is an argument before the value."""
    before = () if first is None else (first,)
    return rule(
        operator,
        ANY_LAYOUT,
        lambda draft, running: Call(args=(*before, within(running, wanted), *args)),
        **options,
    )


RULES = (
    plain("torch.abs", exact=True),
    plain("torch.asinh"),
    plain("torch.atan"),
    plain("torch.ceil", jumps=True),
    plain("torch.clamp", kwargs={"min": -0.9, "max": 1.1}, exact=True),
    plain("torch.cos"),
    plain("torch.deg2rad"),
    plain("torch.erf"),
    plain("torch.erfc"),
    plain("torch.exp"),
    plain("torch.exp2"),
    plain("torch.expm1"),
    plain("torch.floor", jumps=True),
    plain("torch.frac", jumps=True),
    plain("torch.i0", half=False),
    plain("torch.neg", exact=True),
    plain("torch.pow", 3),
    plain("torch.rad2deg"),
    plain("torch.round", kwargs={"decimals": 0}, jumps=True),
    plain("torch.sin"),
    plain("torch.sinc"),
    plain("torch.sinh"),
    plain("torch.square"),
    plain("torch.trunc", jumps=True),
    _ranged("torch.acos", SMALL),
    _ranged("torch.acosh", ABOVE_ONE, half=False),
    _ranged("torch.asin", SMALL),
    _ranged("torch.atanh", SMALL),
    _ranged("torch.cosh", SMALL),
    _ranged("torch.digamma", POSITIVE, half=False),
    _ranged("torch.erfinv", SMALL, half=False),
    _ranged("torch.lgamma", ABOVE_ONE, half=False),
    _ranged("torch.log", POSITIVE, half=False),
    _ranged("torch.log10", POSITIVE, half=False),
    _ranged("torch.log1p", POSITIVE),
    _ranged("torch.log2", POSITIVE, half=False),
    _ranged("torch.logit", OPEN_SHARE, half=False),
    _ranged("torch.mvlgamma", ABOVE_ONE, 2, half=False),
    _ranged("torch.polygamma", POSITIVE, first=1, half=False),
    _ranged("torch.reciprocal", POSITIVE),
    _ranged("torch.rsqrt", POSITIVE),
    _ranged("torch.sqrt", POSITIVE),
    _ranged("torch.tan", SMALL),
    plain(_S + "airy_ai", half=False),
    plain(_S + "bessel_j0", half=False),
    plain(_S + "bessel_j1", half=False),
    _ranged(_S + "bessel_y0", POSITIVE, half=False),
    _ranged(_S + "bessel_y1", POSITIVE, half=False),
    plain(_S + "chebyshev_polynomial_t", 3, half=False),
    plain(_S + "chebyshev_polynomial_u", 2, half=False),
    _ranged(_S + "entr", POSITIVE, half=False),
    _ranged(_S + "erfcx", POSITIVE, half=False),
    plain(_S + "hermite_polynomial_h", 3, half=False),
    plain(_S + "hermite_polynomial_he", 3, half=False),
    plain(_S + "i0e", half=False),
    plain(_S + "i1", half=False),
    plain(_S + "i1e", half=False),
    plain(_S + "laguerre_polynomial_l", 3, half=False),
    plain(_S + "legendre_polynomial_p", 3, half=False),
    plain(_S + "log_ndtr", half=False),
    plain(_S + "modified_bessel_i0", half=False),
    plain(_S + "modified_bessel_i1", half=False),
    _ranged(_S + "modified_bessel_k0", POSITIVE, half=False),
    _ranged(_S + "modified_bessel_k1", POSITIVE, half=False),
    plain(_S + "ndtr", half=False),
    _ranged(_S + "ndtri", OPEN_SHARE, half=False),
    _ranged(_S + "scaled_modified_bessel_k0", POSITIVE, half=False),
    _ranged(_S + "scaled_modified_bessel_k1", POSITIVE, half=False),
    plain(_S + "spherical_bessel_j0", half=False),
)
