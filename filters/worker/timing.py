"""Times eager and compiled forwards while the parent lets nobody else run."""

import contextlib
from collections.abc import Iterator, Sequence
from time import sleep
from typing import Any

import torch

from filters.worker import clock, observing
from filters.worker.channel import Channel
from filters.worker.subject import Subject

_EAGER_COLUMNS = ("eager_ms", "eager_ms_iqr", "eager_samples", "tensor_time_share")
_COMPILED_COLUMNS = ("compile_ms", "compile_ms_iqr", "compile_samples")
_TURNS_MAX = 20
_BETWEEN_TURNS_SECONDS = 0.5


class Timer:
    """Times eager and compiled forwards, alone on the machine; hands recorded times through instead."""

    def __init__(self, subject: Subject, channel: Channel) -> None:
        self._subject = subject
        self._channel = channel
        self._recorded: dict[str, Any] = channel.job["recorded_times"] or {}

    def eager(self) -> dict[str, Any]:
        """Facts of the stage `runtime`."""
        return self._times(_EAGER_COLUMNS, self._subject.model)

    def compiled(self, model: Any) -> dict[str, Any]:
        """Run times of the compiled model."""
        return self._times(_COMPILED_COLUMNS, model)

    def _times(self, columns: Sequence[str], model: Any) -> dict[str, Any]:
        recorded = {name: self._recorded[name] for name in columns if self._recorded.get(name) is not None}
        if len(recorded) == len(columns):
            return recorded
        policy = self._channel.job["policy"]
        inputs = self._subject.fresh_inputs()
        timer = clock.Clock(self._subject.device)
        with self._alone(timer), self._subject.guard("forward_failed", "forward"), torch.no_grad():
            timing = timer.time(lambda: model(*inputs), (policy["eager_ms_min"], policy["eager_ms_max"]))
            values = [timing.median_ms, timing.iqr_ms, timing.samples]
            if model is self._subject.model:
                values.append(observing.tensor_time_share(self._subject, inputs))
        return dict(zip(columns, values, strict=True)) | recorded

    @contextlib.contextmanager
    def _alone(self, timer: clock.Clock) -> Iterator[None]:
        """Hold the machine, once what neighbours had queued before they were stopped has run."""
        for _ in range(_TURNS_MAX):
            with self._channel.exclusive():
                if timer.is_quiet():
                    yield
                    return
            sleep(_BETWEEN_TURNS_SECONDS)
        raise RuntimeError("the device does not come to rest")
