"""Other resolutions: interpolation, pixels into channels and back, sampling along a grid."""

from composer.draft import Draft, Running
from composer.plan import Argument, Term, X
from composer.rules.rule import IMAGES, Call, Rule, is_module, rule
from composer.values import AVERAGED, KEPT

_F = "torch.nn.functional."
_LINEAR = {"NCL": "linear", "NCHW": "bilinear", "NCDHW": "trilinear"}


def _interpolated(operator: str) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        factor = draft.rng.choice((1.5, 2))
        modes = ("nearest", _LINEAR[running.layout], *(["bicubic"] if running.layout == "NCHW" else []))
        kwargs: tuple[tuple[str, Argument], ...] = (
            ("scale_factor", factor),
            ("mode", draft.rng.choice(modes)),
        )
        return Call(args=() if is_module(operator) else (X,), kwargs=kwargs, axes="C", count=2)

    return rule(operator, IMAGES, call, transfer=AVERAGED)


def _rearranged(
    operator: str, *args: Argument, layouts: tuple[str, ...] = ("NCHW",), named: str = "C"
) -> Rule:
    shuffles = operator.lower().replace("_", "").endswith("channelshuffle")
    found = Call(args=args if is_module(operator) else (X, *args), axes="C" if shuffles else "")

    def call(draft: Draft, running: Running) -> Call | None:
        wanted = ((letter, 2 if named == "HW" else 4) for letter in named)
        fits = all(draft.divisors(running.size(letter), (number,)) for letter, number in wanted)
        return found if fits else None

    return rule(operator, layouts, call, transfer=KEPT, named=named, pins=("order",), exact=True)


def _sampled(draft: Draft, running: Running) -> Call:
    """Places between -1 and 1 come as an input."""
    shape = (running.shape()[0], *running.shape()[2:], draft.constant("COORDINATES", 2).name)
    grid = Term("2 * {0} - 1", lambda z: 2 * z - 1, (draft.input(shape, "unit"),))
    kwargs: tuple[tuple[str, Argument], ...] = (
        ("mode", "bilinear"),
        ("padding_mode", draft.rng.choice(("border", "reflection"))),
        ("align_corners", False),
    )
    return Call(args=(X, grid), kwargs=kwargs, axes="C", count=2)


RULES = (
    _interpolated("torch.nn.Upsample"),
    _interpolated(_F + "interpolate"),
    _rearranged("torch.nn.PixelShuffle", 2),
    _rearranged("torch.nn.PixelUnshuffle", 2, named="HW"),
    _rearranged("torch.nn.ChannelShuffle", 4, layouts=("NCHW",)),
    _rearranged(_F + "pixel_shuffle", 2),
    _rearranged(_F + "pixel_unshuffle", 2, named="HW"),
    _rearranged(_F + "channel_shuffle", 4, layouts=("NCHW",)),
    rule(_F + "grid_sample", ("NCHW",), _sampled, transfer=AVERAGED, named="NCHW", half=False),
)
