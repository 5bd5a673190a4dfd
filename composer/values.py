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


@dataclass(frozen=True, slots=True)
class Transfer:
    """How an operator that combines many entries changes a sample."""

    apply: Callable[[Tensor, int], Tensor]
    """(sample, number of entries that are combined) to the sample of the result."""
    nonnegative: bool | None = False
    """Whether no entry of the result can be negative; None: as the operand."""
    selects: bool = False
    """The result is one of the operand's entries, so that a monotone operator before it may be lost."""
    mixes: bool = False
    """Weights or other values are multiplied in: no mean or norm stays fixed."""


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


PROJECTED = Transfer(_projected, mixes=True)
CONTRACTED = Transfer(_contracted, mixes=True)
AVERAGED = Transfer(_averaged, nonnegative=None)
SUMMED = Transfer(lambda sample, count: _averaged(sample, count) * count, nonnegative=None)
LARGEST_OF = Transfer(_largest, nonnegative=None, selects=True)
DEVIATION = Transfer(_deviation, nonnegative=True)
SOFTMAX = Transfer(_softmax, nonnegative=True)
SOFTMIN = Transfer(lambda sample, count: _softmax(-sample, count), nonnegative=True)
LOG_SOFTMAX = Transfer(_log_softmax)
LOG_SUM_EXP = Transfer(_log_sum_exp)
STANDARDISED = Transfer(_standardised)
UNIT_RMS = Transfer(_unit_rms, nonnegative=None)
UNIT_NORM = Transfer(lambda sample, count: _unit_rms(sample, count) / math.sqrt(count), nonnegative=None)
