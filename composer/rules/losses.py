"""Losses without their final mean: per entry, or per sample where the loss itself sums.

A mean over everything would be one number that barely varies.
"""

import math
from dataclasses import replace

from torch import Tensor

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import ANY_LAYOUT, EVERY_AXIS, Call, Rule, is_module, rule
from composer.rules.terms import OPEN_SHARE, within
from composer.values import COSINE, DISTANCE, NONNEGATIVE, SURPRISE, Transfer, normal, rms, shuffled

_F = "torch.nn.functional."
_NONE: tuple[str, Argument] = ("reduction", "none")
_LEFT = {"NF": "N", "NCL": "NF", "NCHW": "NCL"}
"""Layout of what is left without the classes' axis."""


def _loss(operator: str, fed: tuple[Argument, ...], options: tuple[tuple[str, Argument], ...] = ()) -> Call:
    if is_module(operator):
        return Call(kwargs=(*options, _NONE), fed=fed)
    return Call(args=fed, kwargs=(*options, _NONE))


def _per_entry(
    operator: str, target: str = "normal", wanted: str | None = None, half: bool = True, **options: Argument
) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        value = within(running, wanted) if wanted else X
        return _loss(operator, (value, draft.input(running.shape(), target)), tuple(options.items()))

    return rule(operator, ANY_LAYOUT, call, named=EVERY_AXIS, half=half)


def _ranking(operator: str) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        other = draft.input(running.shape())
        return _loss(operator, (X, other, draft.input(running.shape(), "signs")), (("margin", 0.3),))

    return rule(operator, ANY_LAYOUT, call, named=EVERY_AXIS)


def _per_class(operator: str, transfer: Transfer, layouts: tuple[str, ...]) -> Rule:
    """The target is one class per sample or place."""

    def call(draft: Draft, running: Running) -> Call:
        letter = "C" if "C" in running.layout else "F"
        shape = running.shape()
        target = draft.input(shape[:1] + shape[2:], "indices", below=running.size(letter))
        return replace(_loss(operator, (X, target)), axes=letter, layout=_LEFT[running.layout])

    return rule(operator, layouts, call, named=EVERY_AXIS, transfer=transfer, half=False)


def _between_rows(operator: str, transfer: Transfer, others: int, signed: bool) -> Rule:
    """Compares whole rows: with one or two other sets of rows, and a sign per row where wanted."""

    def call(draft: Draft, running: Running) -> Call:
        fed = [X, *(draft.input(running.shape()) for _ in range(others))]
        if signed:
            fed.append(draft.input(running.shape()[:1], "signs"))
        return replace(_loss(operator, tuple(fed)), axes="F", layout="N")

    refuses = ("rms",) if transfer is COSINE else ()
    return rule(operator, ("NF",), call, named="NF", transfer=transfer, refuses=refuses)


def _per_sample(operator: str, target: str) -> Rule:
    def call(draft: Draft, running: Running) -> Call:
        found = _loss(operator, (X, draft.input(running.shape(), target)))
        return replace(found, axes="F", layout="N")

    return rule(operator, ("NF",), call, named="NF", transfer=AVERAGED_LOSS)


def _averaged_loss(sample: Tensor, count: int) -> Tensor:
    """Mean of count terms that spread about as much as they are large."""
    size = rms(sample) + 0.5
    return normal()[sample.argsort().argsort()] * size / math.sqrt(count) + size


def _triplet(sample: Tensor, count: int) -> Tensor:
    """How much further away one stranger is than another, beyond a margin of 1."""
    near, far = DISTANCE.apply(sample, count), DISTANCE.apply(sample, count)
    return (near - far[shuffled(len(far), 16)] + 1.0).clamp_min(0.0)


TRIPLET = Transfer(_triplet, NONNEGATIVE)
AVERAGED_LOSS = Transfer(_averaged_loss, NONNEGATIVE)
PICKED = Transfer(lambda sample, count: -sample)

RULES = (
    _per_entry("torch.nn.BCEWithLogitsLoss", "unit"),
    _per_entry("torch.nn.BCELoss", "unit", OPEN_SHARE, half=False),
    _per_entry("torch.nn.HingeEmbeddingLoss", "signs", margin=0.8),
    _per_entry("torch.nn.HuberLoss", delta=0.7),
    _per_entry("torch.nn.KLDivLoss", "unit"),
    _per_entry("torch.nn.L1Loss"),
    _per_entry("torch.nn.MSELoss"),
    _per_entry("torch.nn.PoissonNLLLoss", "unit", log_input=True),
    _per_entry("torch.nn.SmoothL1Loss", beta=0.6),
    _per_entry("torch.nn.SoftMarginLoss", "signs"),
    _ranking("torch.nn.MarginRankingLoss"),
    _per_class("torch.nn.CrossEntropyLoss", SURPRISE, ("NF", "NCL", "NCHW")),
    _per_class("torch.nn.NLLLoss", PICKED, ("NF", "NCL", "NCHW")),
    _per_class("torch.nn.MultiMarginLoss", AVERAGED_LOSS, ("NF",)),
    _between_rows("torch.nn.CosineEmbeddingLoss", COSINE, 1, True),
    _between_rows("torch.nn.TripletMarginLoss", TRIPLET, 2, False),
    _between_rows("torch.nn.TripletMarginWithDistanceLoss", TRIPLET, 2, False),
    _per_sample("torch.nn.MultiLabelSoftMarginLoss", "unit"),
    _per_entry(_F + "binary_cross_entropy", "unit", OPEN_SHARE, half=False),
    _per_entry(_F + "binary_cross_entropy_with_logits", "unit"),
    _per_entry(_F + "hinge_embedding_loss", "signs", margin=1.2),
    _per_entry(_F + "huber_loss", delta=0.4),
    _per_entry(_F + "kl_div", "unit"),
    _per_entry(_F + "l1_loss"),
    _per_entry(_F + "mse_loss"),
    _per_entry(_F + "poisson_nll_loss", "unit", log_input=True),
    _per_entry(_F + "smooth_l1_loss", beta=0.3),
    _per_entry(_F + "soft_margin_loss", "signs"),
    _ranking(_F + "margin_ranking_loss"),
    _per_class(_F + "cross_entropy", SURPRISE, ("NF", "NCL", "NCHW")),
    _per_class(_F + "nll_loss", PICKED, ("NF", "NCL", "NCHW")),
    _per_class(_F + "multi_margin_loss", AVERAGED_LOSS, ("NF",)),
    _between_rows(_F + "cosine_embedding_loss", COSINE, 1, True),
    _between_rows(_F + "triplet_margin_loss", TRIPLET, 2, False),
    _between_rows(_F + "triplet_margin_with_distance_loss", TRIPLET, 2, False),
    _per_sample(_F + "multilabel_soft_margin_loss", "unit"),
)
