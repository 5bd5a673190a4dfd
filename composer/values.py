"""What is known of the entries of a tensor, without computing it: enough to avoid worthless layers.

A tensor is described by a sample of one of its entries over many input draws with fixed weights. Entries
are taken as independent. Element-wise operators are applied to the sample as they are; for the others a
formula says how the sample changes. That is crude, but tells a softmax over a thousand columns from one
over eight, and a ReLU that changes something from one that follows a sigmoid.
"""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

SAMPLE = 512
"""Entries per sample; samples are float64 and stay paired: entry k follows from entry k of the operand."""

UNBOUNDED = (-math.inf, math.inf)
NONNEGATIVE = (0.0, math.inf)
SHARES = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Transfer:
    """How an operator that combines many entries changes a sample."""

    apply: Callable[[Tensor, int], Tensor]
    """(sample, number of entries that are combined) to the sample of the result."""
    bounds: tuple[float, float] | None = UNBOUNDED
    """Range of the result's entries; None: as the operand's."""
    selects: bool = False
    """The result is one of the operand's entries, so that a monotone operator before it may be lost."""
    mixes: bool = False
    """Weights or other values are multiplied in: no mean or norm stays fixed."""
    rescales: bool = False
    """Every entry of the result is one of the operand's, shifted and scaled by statistics of them all."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one step of a plan does to values."""

    transfer: Transfer | None
    """None for an element-wise operator."""
    axes: tuple[int, ...] = ()
    """Axes of the operand along which entries are combined."""
    count: int | None = None
    """Entries that are combined; None: as many as the axes hold."""


@cache
def normal(number: int = 0) -> Tensor:
    """Return a sample of the standard normal; each number gives another, fixed order."""
    quantiles = (torch.arange(SAMPLE, dtype=torch.float64) + 0.5) / SAMPLE
    return torch.special.ndtri(quantiles)[shuffled(SAMPLE, number)]


@cache
def uniform(number: int = 0) -> Tensor:
    """Return a sample of the uniform distribution between 0 and 1, each number in another, fixed order."""
    return ((torch.arange(SAMPLE, dtype=torch.float64) + 0.5) / SAMPLE)[shuffled(SAMPLE, number + 100)]


@cache
def shuffled(count: int, number: int) -> Tensor:
    """Return a fixed permutation of 0 to count - 1 that torch's generator has no part in."""
    order = list(range(count))
    random.Random(number).shuffle(order)
    return torch.tensor(order)


def rms(sample: Tensor) -> float:
    """Return the root mean square."""
    return float(sample.square().mean().sqrt())


def _gaussian(like: Tensor, mean: float | Tensor, deviation: float | Tensor) -> Tensor:
    """Return a normal sample in the order of `like`."""
    ranks = like.argsort().argsort()
    return normal().sort().values[ranks] * deviation + mean


def _projected(sample: Tensor, count: int) -> Tensor:
    """Weights as torch draws them, uniform with variance 1 / (3 fan-in), whatever the fan-in."""
    deviation, mean = torch.std_mean(sample)
    return _gaussian(sample, mean.abs() / math.sqrt(3), deviation / math.sqrt(3))


def _contracted(sample: Tensor, count: int) -> Tensor:
    return _gaussian(sample, 0.0, math.sqrt(count) * rms(sample))


def _averaged(sample: Tensor, count: int) -> Tensor:
    deviation, mean = torch.std_mean(sample)
    return _gaussian(sample, mean, deviation / math.sqrt(count))


def _largest(sample: Tensor, count: int) -> Tensor:
    """Quantile q of the largest of n entries is quantile q^(1/n) of one."""
    ranks = (sample.argsort().argsort().double() + 0.5) / SAMPLE
    return torch.quantile(sample, ranks ** (1 / count))


def _deviation(sample: Tensor, count: int) -> Tensor:
    """Standard error of the standard deviation, from the fourth moment."""
    centred = sample - sample.mean()
    variance = centred.square().mean()
    error = (centred.square() - variance).square().mean().sqrt() / (2 * variance.sqrt()) / math.sqrt(count)
    return _gaussian(sample, variance.sqrt(), error)


def _softmax(sample: Tensor, count: int) -> Tensor:
    weights = (sample - sample.max()).exp()
    return weights / (weights.mean() * count)


def _log_softmax(sample: Tensor, count: int) -> Tensor:
    shifted = sample - sample.max()
    return shifted - (shifted.exp().mean() * count).log()


def _log_sum_exp(sample: Tensor, count: int) -> Tensor:
    weights = (sample - sample.max()).exp()
    deviation, mean = torch.std_mean(weights)
    return _gaussian(sample, sample.max() + (mean * count).log(), deviation / mean / math.sqrt(count))


def _standardised(sample: Tensor, count: int) -> Tensor:
    variance, mean = torch.var_mean(sample)
    return (sample - mean) / (variance + 1e-5).sqrt()


def _unit_rms(sample: Tensor, count: int) -> Tensor:
    return sample / max(rms(sample), 1e-6)


def _cumulated(sample: Tensor, count: int) -> Tensor:
    """Sums of 1 to count entries: entry k of the sample stands for a place of its own."""
    deviation, mean = torch.std_mean(sample)
    places = uniform(7) * count + 1
    return places * mean + places.sqrt() * _gaussian(sample, 0.0, deviation)


def _alternating(sample: Tensor, count: int) -> Tensor:
    """Signed sums of entries, as in a Fourier transform."""
    return _gaussian(sample, 0.0, math.sqrt(count / 2) * rms(sample))


def _magnitudes(sample: Tensor, count: int) -> Tensor:
    """Sizes of complex sums: two independent parts of equal variance."""
    one = _alternating(sample, count)
    return torch.hypot(one, one[shuffled(SAMPLE, 9)])


def _length(sample: Tensor, count: int) -> Tensor:
    """Root of a sum of squares."""
    return (_averaged(sample.square(), count) * count).clamp_min(0.0).sqrt()


def _middle(sample: Tensor, count: int) -> Tensor:
    """Standard error of a median is pi / 2 times in variance that of a mean."""
    error = float(sample.std()) * math.sqrt(math.pi / 2 / count)
    return _gaussian(sample, sample.median(), error)


def _gated(sample: Tensor, count: int) -> Tensor:
    return sample * sample[shuffled(SAMPLE, 10)].sigmoid()


def _attended(sample: Tensor, count: int) -> Tensor:
    """A softmax over standard normal scores averages over count / e values."""
    return _gaussian(sample, 0.0, min(1.0, math.sqrt(math.e / count)))


def _self_attended(sample: Tensor, count: int) -> Tensor:
    """Fresh weights give near-uniform scores: an average over all positions, projected twice."""
    return _gaussian(sample, 0.0, 0.4 * rms(sample) / math.sqrt(count))


def _surprise(sample: Tensor, count: int) -> Tensor:
    """Negative log-softmax at one place."""
    return _log_sum_exp(sample, count) - sample[shuffled(SAMPLE, 11)]


def _distance(sample: Tensor, count: int) -> Tensor:
    """Length of the difference to standard normal vectors."""
    return _length(sample - normal(12), count)


def _fresh(sample: Tensor, count: int) -> Tensor:
    return _gaussian(sample, 0.0, 1.0)


def _recurrent(sample: Tensor, count: int) -> Tensor:
    """Gated hidden states with fresh weights spread over about 0.2."""
    return _gaussian(sample, 0.0, 0.2 * min(1.0, float(sample.std())))


PROJECTED = Transfer(_projected, mixes=True)
CONTRACTED = Transfer(_contracted, mixes=True)
AVERAGED = Transfer(_averaged, None)
SUMMED = Transfer(lambda sample, count: _averaged(sample, count) * count)
LARGEST_OF = Transfer(_largest, None, selects=True)
SMALLEST_OF = Transfer(lambda sample, count: -_largest(-sample, count), None, selects=True)
RUNNING_LARGEST = Transfer(lambda sample, count: _largest(sample, max(2, count // 2)), None, selects=True)
RUNNING_SMALLEST = Transfer(lambda sample, count: -_largest(-sample, max(2, count // 2)), None, selects=True)
MIDDLE_OF = Transfer(_middle, None)
DEVIATION = Transfer(_deviation, NONNEGATIVE)
VARIANCE = Transfer(lambda sample, count: _deviation(sample, count).square(), NONNEGATIVE)
LENGTH = Transfer(_length, NONNEGATIVE)
CUMULATED = Transfer(_cumulated)
ALTERNATING = Transfer(_alternating, mixes=True)
ALTERNATING_MEAN = Transfer(lambda sample, count: _alternating(sample, count) / count, mixes=True)
MAGNITUDES = Transfer(_magnitudes, NONNEGATIVE, mixes=True)
MEAN_MAGNITUDES = Transfer(lambda sample, count: _magnitudes(sample, count) / count, NONNEGATIVE, mixes=True)
SOFTMAX = Transfer(_softmax, SHARES)
SOFTMIN = Transfer(lambda sample, count: _softmax(-sample, count), SHARES)
LOG_SOFTMAX = Transfer(_log_softmax)
LOG_SUM_EXP = Transfer(_log_sum_exp)
SURPRISE = Transfer(_surprise)
STANDARDISED = Transfer(_standardised, rescales=True)
UNIT_RMS = Transfer(_unit_rms, rescales=True)
ENCODED = Transfer(_standardised)
DAMPED = Transfer(_unit_rms)
UNIT_NORM = Transfer(lambda sample, count: _unit_rms(sample, count) / math.sqrt(count))
KEPT = Transfer(lambda sample, count: sample, None)
MIXED = Transfer(lambda sample, count: torch.where(normal(15) > 0, sample, normal(16)), mixes=True)
MASKED = Transfer(lambda sample, count: torch.where(normal(15) > 0, sample, 0.0))
PADDED = Transfer(lambda sample, count: sample)
DIFFERENCE = Transfer(lambda sample, count: sample - sample[shuffled(SAMPLE, 14)])
GATED = Transfer(_gated)
LEAKING = Transfer(lambda sample, count: torch.where(sample > 0, sample, sample * uniform(17)))
ATTENDED = Transfer(_attended, mixes=True)
SELF_ATTENDED = Transfer(_self_attended, mixes=True)
DISTANCE = Transfer(_distance, NONNEGATIVE)
COSINE = Transfer(lambda sample, count: _gaussian(sample, 0.0, 1 / math.sqrt(count)), (-1.0, 1.0))
FRESH = Transfer(_fresh, mixes=True)
FRESH_SUM = Transfer(lambda sample, count: _fresh(sample, count) / math.sqrt(count), mixes=True)
RECURRENT = Transfer(_recurrent, (-1.0, 1.0), mixes=True)
