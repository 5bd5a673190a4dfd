"""Stage labels: which operators ran, what they cost, and which of them could be left out.

These passes run under function and dispatch modes and with hooks, all of which change fused paths.
Nothing of their bits or times is used elsewhere.
"""

import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from filters.operators import element_of, label_of, module_element, module_label
from filters.worker import clock, trees
from filters.worker.answers import disturbed, has_effect
from filters.worker.faults import CandidateFault, CannotTell
from filters.worker.subject import Subject

_PROBED_CALLS_MAX = 12
"""Longer layers are not probed for operators without effect."""
_SHARES = 3
_SHARE_BEYOND_DOUBT = 0.8

Replace = Callable[[Any, torch.Tensor | None, bool], Any]
"""From (result, a copy of the first tensor argument, is it in place?) to another result."""


def labels(subject: Subject) -> dict[str, Any]:
    """Facts of the stage `labels`."""
    trace = OperatorTrace(subject.model)
    inputs = subject.fresh_inputs()
    subject.forward(inputs, within=trace.running)
    aten = AtenTrace()
    subject.forward(inputs, within=aten.running)
    subject.dtypes = aten.dtypes
    return {
        "ops": list(dict.fromkeys(trace.calls)),
        "signature": trace.signature,
        "ineffective_ops": _ineffective(subject, trace),
        "aten_ops": sorted(aten.names),
        "aten_nodes": aten.calls,
        "flops": aten.flops,
        "bytes": aten.bytes,
    }


class OperatorTrace(TorchFunctionMode):
    """Public operators in the order in which they run: torch.nn modules as one, functions outside them."""

    def __init__(
        self, model: nn.Module, replace_call: int | None = None, replace: Replace | None = None
    ) -> None:
        super().__init__()
        self._model = model
        self._replace_call = replace_call
        self._replace = replace
        self._first_argument: torch.Tensor | None = None
        self._inside = 0
        self.calls: list[str] = []
        """Label of every call that has one."""
        self.can_skip: list[bool] = []
        """Whether its first tensor could stand for the result of each of them."""
        self.signature: list[str] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record what runs inside this block, from nothing."""
        self._inside = 0
        self.calls = []
        self.can_skip = []
        self.signature = []
        handles = []
        for module in self._model.modules():
            if module_element(module) is not None:
                handles.append(module.register_forward_pre_hook(self._enter))
                handles.append(module.register_forward_hook(self._leave, always_call=True))
        try:
            with self:
                yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        self._inside += 1
        if self._inside > 1:
            return
        self._note_element(module_element(module))
        self._keep_first(args)

    def _leave(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> Any:
        self._inside -= 1
        label = module_label(module)
        return None if self._inside or label is None else self._called(label, result, args)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if self._inside:
            return func(*args, **(kwargs or {}))
        self._note_element(element_of(func))
        label = label_of(func)
        if label is None:
            return func(*args, **(kwargs or {}))
        self._keep_first(args)
        return self._called(label, func(*args, **(kwargs or {})), args)

    def _note_element(self, element: str | None) -> None:
        if element is not None:
            self.signature.append(element)

    def _keep_first(self, args: tuple[Any, ...]) -> None:
        """Copy the first tensor of the call that is to be replaced, before it may be overwritten."""
        if len(self.calls) == self._replace_call:
            with torch._C.DisableTorchFunction():
                first = _first_tensor(args)
                self._first_argument = None if first is None else first.clone()

    def _called(self, label: str, result: Any, args: tuple[Any, ...]) -> Any:
        self.calls.append(label)
        self.can_skip.append(_look_alike(result, _first_tensor(args)))
        if self._replace is None or len(self.calls) - 1 != self._replace_call:
            return result
        with torch._C.DisableTorchFunction():
            return self._replace(result, self._first_argument, _in_place(result, args))


def _ineffective(subject: Subject, trace: OperatorTrace) -> list[str] | None:
    """Return labels all of whose calls can be skipped, or whose results nobody reads."""
    if len(trace.calls) > _PROBED_CALLS_MAX:
        return None
    right = trees.tensors(subject.output)
    effective: set[str] = set()
    for number, (label, can_skip) in enumerate(zip(trace.calls, trace.can_skip, strict=True)):
        if label not in effective and _changes(subject, number, right, _skipped if can_skip else _disturbed):
            effective.add(label)
    return sorted(set(trace.calls) - effective)


def _changes(subject: Subject, number: int, right: list[torch.Tensor], replace: Replace) -> bool:
    trace = OperatorTrace(subject.model, number, replace)
    inputs = subject.fresh_inputs()  # a replaced result may be an input's memory
    try:
        output = subject.forward(inputs, within=trace.running)
    except CandidateFault:
        return True  # what follows cannot do without this operator
    except CannotTell:
        return True
    return has_effect(right, trees.tensors(output))


def _disturbed(result: Any, first: torch.Tensor | None, in_place: bool) -> Any:
    """Return other values of the same kind: changes nothing only if nobody reads the result."""
    changed = trees.map_tensors(result, disturbed)
    if trees.same_bits(changed, result):
        raise CannotTell
    return result.copy_(changed) if in_place else changed


def _skipped(result: Any, first: torch.Tensor | None, in_place: bool) -> Any:
    """Hand the first argument through, which shows as well whether anybody reads the result."""
    if not _look_alike(result, first):
        raise CannotTell
    return result.copy_(first) if in_place else first


def _first_tensor(args: tuple[Any, ...]) -> torch.Tensor | None:
    return next((a for a in args if isinstance(a, torch.Tensor)), None)


def _look_alike(result: Any, first: torch.Tensor | None) -> bool:
    """True where one may take the other's place."""
    if not isinstance(result, torch.Tensor) or first is None:
        return False
    return first.shape == result.shape and first.dtype == result.dtype


def _in_place(result: Any, args: tuple[Any, ...]) -> bool:
    same = (a for a in args if isinstance(a, torch.Tensor) and isinstance(result, torch.Tensor))
    return any(a.data_ptr() == result.data_ptr() for a in same)


class AtenTrace(TorchDispatchMode):
    """aten calls of one forward: names, number, bytes touched, floating dtypes, FLOPs."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Record what runs inside this block, from nothing."""
        self.names: set[str] = set()
        self.calls = 0
        self.bytes = 0
        self.dtypes: set[torch.dtype] = set()
        with FlopCounterMode(display=False) as counter, self:
            yield
        self.flops = int(counter.get_total_flops())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.names.add(func._schema.name.removeprefix("aten::"))
        self.calls += 1
        results = trees.tensors(result)
        self.dtypes |= {t.dtype for t in results if t.is_floating_point() or t.is_complex()}
        if not func.is_view:
            touched = trees.tensors([args, kwargs or {}]) + results
            self.bytes += sum(_stored_bytes(t) for t in {id(t): t for t in touched}.values())
        return result


def _stored_bytes(tensor: torch.Tensor) -> int:
    """Bytes that a call must touch: expanded dimensions (stride 0) count once."""
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= size if stride != 0 else min(size, 1)
    return elements * tensor.element_size()


class _Stopwatch(TorchDispatchMode):
    """Adds up the time inside aten calls."""

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self._device = device
        self.seconds = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        start = clock.seconds()
        result = func(*args, **(kwargs or {}))
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.seconds += clock.seconds() - start
        return result


def tensor_time_share(subject: Subject, inputs: list[Any]) -> float:
    """Return the share of a forward that is spent inside aten calls; sleep and Python loops are outside.

    The median of a few forwards, since one may have been interrupted, unless the first leaves no doubt.
    """
    first = _one_share(subject, inputs)
    if first >= _SHARE_BEYOND_DOUBT:
        return first
    return statistics.median([first, *(_one_share(subject, inputs) for _ in range(_SHARES - 1))])


def _one_share(subject: Subject, inputs: list[Any]) -> float:
    subject.synchronize()
    watch = _Stopwatch(subject.device)
    start = clock.seconds()
    with watch, torch.no_grad():
        subject.model(*inputs)  # `subject.forward` might wait for memory while all others stand still
        subject.synchronize()
    return min(1.0, watch.seconds / (clock.seconds() - start))
