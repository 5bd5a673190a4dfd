"""Stages compile and compare: does torch.compile take it, and do eager and compiled agree?

Bitwise equality is not expected of a compiler. As `torch._dynamo.utils.same` does, a double-precision
run arbitrates: eager must be close to it, and the compiled output may be a small factor further away.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch

from filters.worker import clock, trees
from filters.worker.double import double_output
from filters.worker.faults import CandidateFault, is_out_of_memory, one_line
from filters.worker.subject import Subject

_FLOORS = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 1e-3, torch.bfloat16: 8e-3}
"""Relative RMSE that rounding alone explains; about 80, 80, 1 and 1 units in the last place."""
_ALLCLOSE = {torch.float64: 1e-7, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 2e-2}
"""Tolerance of an element, relative to itself and to the rms of its tensor: sums cancel."""


def compile_model(subject: Subject) -> tuple[dict[str, Any], Callable[..., Any], Any]:
    """Compile and run once. Returns facts of the stage `compile`, the compiled model and its output."""
    import torch._dynamo

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(subject.model, backend=subject.job["compile_backend"])
    start = clock.seconds()
    try:
        with torch.no_grad(), _asking_once_compiled(subject):
            output = subject.memory.enough_for(lambda: compiled(*subject.inputs))
        subject.synchronize()
    except BaseException as error:  # candidate code and the compiler may raise anything
        fault = "out_of_memory" if is_out_of_memory(error) else "compile_failed"
        raise CandidateFault(fault, one_line(error)) from error
    counters = torch._dynamo.utils.counters
    facts = {
        "compile_seconds": round(clock.seconds() - start, 3),
        "graphs": int(counters["stats"]["unique_graphs"]),
        "graph_breaks": sum(counters["graph_break"].values()),
    }
    return facts, compiled, output


@contextmanager
def _asking_once_compiled(subject: Subject) -> Iterator[None]:
    """Leave the device during each compilation in this block, and ask for the memory of a run after it.

    Later ones may happen while alone.
    """

    def leave(found: Any) -> None:
        subject.memory.leave_device()

    def ask(found: Any) -> None:
        subject.memory.ask(lambda: bytes_to_run(subject))

    callbacks = torch._dynamo.callback_handler
    callbacks.register_start_callback(leave)
    callbacks.register_end_callback(ask)
    try:
        yield
    finally:
        callbacks.remove_start_callback(leave)
        callbacks.remove_end_callback(ask)


def bytes_to_run(subject: Subject) -> int:
    """Return the device memory for one more forward beside the output that is there."""
    return subject.bytes_of_forward() + trees.stored_bytes(subject.output)


def compare(subject: Subject, compiled_output: Any) -> dict[str, Any]:
    """Facts of the stage `compare`."""
    eager = subject.output
    if trees.structure(eager) != trees.structure(compiled_output):
        fault = f"eager {trees.structure(eager)[:200]}, compiled {trees.structure(compiled_output)[:200]}"
        return {"structure_fault": fault}
    facts: dict[str, Any] = {"structure_fault": ""}
    left, right = trees.tensors(eager), trees.tensors(compiled_output)
    lowest = lowest_precision(subject, left)
    exact = double_output(subject)
    if exact is None or [t.shape for t in exact] != [t.shape for t in left]:
        tolerance = _ALLCLOSE[lowest]
        close = all(_allclose(one, other, tolerance) for one, other in zip(left, right, strict=True))
        return facts | {"compared_with": "allclose", "compiled_allclose": close}
    half = lowest in (torch.float16, torch.bfloat16)
    ratio = subject.job["policy"]["compiled_error_ratio_half" if half else "compiled_error_ratio"]
    errors = [
        _errors(one, other, truth, ratio, _FLOORS[lowest])
        for one, other, truth in zip(left, right, exact, strict=True)
    ]
    worst = max(errors, key=lambda each: each.compiled / each.allowed)
    return facts | {
        "compared_with": "fp64",
        "eager_error": max(each.eager for each in errors),
        "compiled_error": worst.compiled,
        "allowed_error": worst.allowed,
    }


class _Errors(NamedTuple):
    """Relative RMSE of one leaf against the truth, and what compiled may have."""

    eager: float
    compiled: float
    allowed: float


def _errors(
    eager: torch.Tensor, compiled: torch.Tensor, truth: torch.Tensor, ratio: float, floor: float
) -> _Errors:
    if not (eager.is_floating_point() or eager.is_complex()):
        unequal = float((eager != truth).double().mean())
        return _Errors(unequal, float((eager != compiled).double().mean()), 1e-300)
    scale = trees.norm(truth) or math.sqrt(max(1, truth.numel()))
    eager_error, compiled_error = (_distance(value, truth) / scale for value in (eager, compiled))
    return _Errors(eager_error, compiled_error, ratio * eager_error + floor)


def _distance(value: torch.Tensor, truth: torch.Tensor) -> float:
    """Return the Euclidean norm of the difference."""
    return math.hypot(*(trees.norm(one - other) for one, other in trees.pieces(value, truth)))


def _allclose(one: torch.Tensor, other: torch.Tensor, tolerance: float) -> bool:
    if one.is_floating_point() or one.is_complex():
        absolute = tolerance * trees.rms(one)
        return all(
            torch.allclose(left, right, atol=absolute, rtol=tolerance, equal_nan=True)
            for left, right in trees.pieces(one, other)
        )
    return torch.equal(one, other)


def lowest_precision(subject: Subject, output: list[torch.Tensor]) -> torch.dtype:
    """Return the coarsest floating dtype among inputs, parameters, outputs and aten results."""
    seen = {t.dtype for t in (*output, *trees.tensors(subject.inputs), *subject.model.parameters())}
    seen |= subject.dtypes
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        if dtype in seen or (dtype is torch.float32 and torch.complex64 in seen):
            return dtype
    return torch.float64
