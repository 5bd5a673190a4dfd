"""Layers lifted from transformers as candidates: only the batch is chosen, everything else is the library's.

The texts were checked against the library when they were frozen (`ops_crawler.lifting`). Nothing is executed
here: times are predicted from the work that was counted then.
"""

import hashlib
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from composer.candidate import Candidate
from composer.profiles import DeviceProfile
from composer.rule_composer import RuleComposer
from composer.sizes import FASTEST, SLOWEST, rungs_within, wanted_seconds
from ops_crawler.lifting.frozen import frozen
from ops_crawler.lifting.lifted import LICENSE, Cost, LiftedLayer, Scale
from ops_crawler.lifting.task_text import render
from ops_crawler.operator import Operator

_BATCHES = (2, 2**18)
"""Least and largest batch; outputs must be seen to vary along it."""
_SCALES = {"cpu": ("small", "full")}
"""Preferred first; other devices take the library's own widths where they fit."""


@dataclass(frozen=True, slots=True)
class SizedLayer:
    """A layer at one of its scales, with the batches that a device can take."""

    layer: LiftedLayer
    scale: Scale
    seconds: dict[int, float]
    """Predicted time by batch, in ascending order; all within memory, some of them near the wanted times."""


class LayerComposer:
    """Deals every usable layer once; which, and at which batch, depends on seed, profile and place alone."""

    def __init__(self, operators: Sequence[Operator], profile: DeviceProfile, seed: int) -> None:
        known = {operator.alias_group for operator in operators if operator.set_aside is None}
        layers = [one for one in frozen().layers if f"{one.module}.{one.name}" in known]
        fitting = [sized for layer in layers if (sized := fitted(layer, profile)) is not None]
        self.seed = seed
        self._dealt = self._rng("layers").sample(fitting, len(fitting))

    def __len__(self) -> int:
        """Return the number of layers; each gives one task, since tasks that differ in size alone are one."""
        return len(self._dealt)

    def compose(self, place: int, index: int, ladder_steps: int = 0) -> Candidate:
        """Return layer number `place` as candidate number `index`, its batch moved by so many steps."""
        sized = self._dealt[place]
        wanted = wanted_seconds(self._rng(f"layer {place}"))
        nearest = min(sized.seconds, key=lambda one: abs(math.log(sized.seconds[one] / wanted)))
        batches = list(sized.seconds)
        batch = batches[min(max(batches.index(nearest) + ladder_steps, 0), len(batches) - 1)]
        layer = sized.layer
        return Candidate(
            index=index,
            name=f"layers_{self.seed}_{index:06d}",
            code=render(layer, sized.scale, batch),
            requested_ops=(layer.name,),
            data_source="transformers",
            ladder_steps=ladder_steps,
            predicted_ms=sized.seconds[batch] * 1e3,
            composer="layers",
            origin="lifted",
            seed=self.seed,
            source_license=LICENSE,
            source_path=f"{layer.path} of transformers {layer.library_version}",
        )

    def _rng(self, purpose: str) -> random.Random:
        return random.Random(hashlib.sha256(f"{self.seed}/{purpose}".encode()).digest())


class NoLayersError(ValueError):
    """None of the given operators is a lifted layer that fits the device. Raised by `MixedComposer`."""


class MixedComposer:
    """Composes layers by rules, and an even share of lifted ones between them."""

    def __init__(self, rules: RuleComposer, operators: Sequence[Operator], share: float) -> None:
        self._rules, self._share = rules, share
        self._layers = LayerComposer(operators, rules.profile, rules.seed)
        if not len(self._layers):
            raise NoLayersError(
                "no layer lifted from transformers among the operators, but composer.layers_share asks for "
                "some; add the source `transformers`"
            )

    def compose(self, index: int, ladder_steps: int = 0) -> Candidate:
        """Return candidate number `index`; once all layers are dealt, rules take their places."""
        place = layer_place(index, self._share)
        if place is None or place >= len(self._layers):
            return self._rules.compose(index, ladder_steps)
        return self._layers.compose(place, index, ladder_steps)


def layer_place(index: int, share: float) -> int | None:
    """Return which layer a candidate is, counted from 0, None where it is none: each gets its even share."""
    place = math.floor(index * share)
    return place if math.floor((index + 1) * share) > place else None


def fitted(layer: LiftedLayer, profile: DeviceProfile) -> SizedLayer | None:
    """Return the layer at its first scale that some batch brings near the wanted times, None without one."""
    order = _SCALES.get(profile.name, ("full", "small"))
    scales = {scale.name: scale for scale in layer.scales}
    for scale in (scales[name] for name in order if name in scales):
        seconds = dict(_batches(scale, profile))
        if any(FASTEST <= one <= SLOWEST for one in seconds.values()):
            return SizedLayer(layer, scale, seconds)
    return None


def _batches(scale: Scale, profile: DeviceProfile) -> Iterator[tuple[int, float]]:
    if not any(one.batch_axes for one in scale.inputs):
        return
    for batch in rungs_within(*_BATCHES):
        if _fits(scale, batch, profile):
            yield batch, predicted_seconds(scale, batch, profile)


def predicted_seconds(scale: Scale, batch: int, profile: DeviceProfile) -> float:
    """Return the predicted eager time at a batch, taking work as linear in it."""
    low, high = scale.costs
    total = 0.0
    for name, (calls, *_) in low.work.items():
        bytes_moved, flops = (
            _at(batch, low, low.work[name][part], high, high.work.get(name, low.work[name])[part])
            for part in (1, 2)
        )
        total += profile.seconds(name, int(bytes_moved), int(flops)) + (calls - 1) * profile.launch_seconds
    return total


def _fits(scale: Scale, batch: int, profile: DeviceProfile) -> bool:
    low, high = scale.costs
    tensor = _at(batch, low, low.tensor_bytes, high, high.tensor_bytes)
    peak = _at(batch, low, low.peak_bytes, high, high.peak_bytes)
    return tensor <= profile.tensor_bytes_max and peak <= profile.peak_bytes_max


def _at(batch: int, low: Cost, at_low: float, high: Cost, at_high: float) -> float:
    """Return a figure at a batch on the line through two that are known."""
    return at_low + (at_high - at_low) * (batch - low.batch) / (high.batch - low.batch)
