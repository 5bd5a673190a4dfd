"""Stages compile and compare: does torch.compile take it, and do eager and compiled agree?

Bitwise equality is not expected of a compiler. As `torch._dynamo.utils.same` does, a double-precision
run arbitrates: eager must be close to it, and the compiled output may be a small factor further away.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from filters.worker import clock, trees
from filters.worker.double import double_output
from filters.worker.subject import CandidateFault, Subject, is_out_of_memory, one_line

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
        with torch.no_grad():
            output = compiled(*subject.inputs)
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


def compare(subject: Subject, compiled_output: Any) -> dict[str, Any]:
    """Facts of the stage `compare`."""
    eager = subject.output
    if trees.structure(eager) != trees.structure(compiled_output):
        fault = f"eager {trees.structure(eager)[:200]}, compiled {trees.structure(compiled_output)[:200]}"
        return {"structure_fault": fault}
    facts: dict[str, Any] = {"structure_fault": ""}
    left, right = trees.tensors(eager), trees.tensors(compiled_output)
    lowest = lowest_precision(subject, left)
    tolerance = _ALLCLOSE[lowest]
    facts["compiled_allclose"] = all(
        _allclose(one, other, tolerance) for one, other in zip(left, right, strict=True)
    )
    exact = double_output(subject)
    if exact is None or [t.shape for t in exact] != [t.shape for t in left]:
        return facts | {"compared_with": "allclose"}
    policy = subject.job["policy"]
    half = lowest in (torch.float16, torch.bfloat16)
    ratio = policy["compiled_error_ratio_half" if half else "compiled_error_ratio"]
    worst = max(
        (
            _errors(one, other, truth, ratio, _FLOORS[lowest])
            for one, other, truth in zip(left, right, exact, strict=True)
        ),
        key=lambda errors: errors[1] / errors[2],
    )
    eager_error = max(_relative_rmse(one, truth) for one, truth in zip(left, exact, strict=True))
    return facts | {
        "compared_with": "fp64",
        "eager_error": eager_error,
        "compiled_error": worst[1],
        "allowed_error": worst[2],
    }


def _errors(
    eager: torch.Tensor, compiled: torch.Tensor, truth: torch.Tensor, ratio: float, floor: float
) -> tuple[float, float, float]:
    """Return (eager error, compiled error, allowed error) of one leaf."""
    if not (eager.is_floating_point() or eager.is_complex()):
        return 0.0, float((eager != compiled).double().mean()), 1e-300
    eager_error = _relative_rmse(eager, truth)
    return eager_error, _relative_rmse(compiled, truth), ratio * eager_error + floor


def _relative_rmse(value: torch.Tensor, truth: torch.Tensor) -> float:
    """Return rms(value - truth) / rms(truth); the share of unequal elements for integers and booleans."""
    if not (value.is_floating_point() or value.is_complex()):
        return float((value != truth).double().mean())
    wide = torch.complex128 if value.is_complex() else torch.float64
    difference = scale = 0.0
    for one, right in trees.pieces(value, truth):
        difference += float((one.to(wide) - right.to(wide)).abs().square().sum())
        scale += float(right.to(wide).abs().square().sum())
    return math.sqrt(difference / scale) if scale > 0 else math.sqrt(difference / max(1, value.numel()))


def _allclose(one: torch.Tensor, other: torch.Tensor, tolerance: float) -> bool:
    if one.is_floating_point() or one.is_complex():
        squares = sum(float(part.abs().double().square().sum()) for (part,) in trees.pieces(one))
        absolute = tolerance * math.sqrt(squares / max(1, one.numel()))
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
