"""The candidate inside its worker: source loaded, model built, inputs drawn."""

import copy
import importlib.util
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from filters.worker import trees
from filters.worker.conduct import Watch
from filters.worker.device_memory import Memory, Result
from filters.worker.faults import CandidateFault, CannotTell, is_out_of_memory, one_line
from filters.worker.quick_draws import DrawnOn
from filters.worker.randomness import seed_all
from filters.worker.set_order import execute_with_own_sets

_MODEL_SEED = 1234
_FIRST_DRAW_SEED = 42
"""KernelBench's seed; draw number k uses 42 + k."""
DRAWS = 5
"""As many as CUDA-Agent's verifier compares."""


@dataclass(slots=True, kw_only=True)
class Subject:
    """Everything that the stages share about one candidate."""

    device: torch.device
    watch: Watch
    job: dict[str, Any]
    task: Any = None
    """The imported module of the task."""
    model: nn.Module = field(default_factory=nn.Module)
    inputs: list[Any] = field(default_factory=list)
    """Draw 0, kept untouched; stages that may write to inputs take `fresh_inputs`."""
    output: Any = None
    """Eager output for `inputs`."""
    dtypes: set[torch.dtype] = field(default_factory=set)
    """Floating dtypes of all intermediate results, once observed."""
    intermediate_bytes: int = 0
    """Device memory that a forward takes beside inputs and model, its output included."""
    memory: Memory = field(default_factory=Memory)
    """The device's memory, as far as this worker has it."""

    def load(self, *, own_sets: bool = False) -> None:
        """Import the source from a real file: inductor, inspect and Triton need one."""
        path = Path.cwd().parent / "task.py"
        path.write_text(self.job["code"], encoding="utf-8")
        spec = importlib.util.spec_from_file_location("task", path)
        assert spec is not None
        assert spec.loader is not None
        self.task = importlib.util.module_from_spec(spec)
        sys.modules["task"] = self.task
        seed_all(_MODEL_SEED)  # weights may be drawn at module level as well
        with self.guard("init_failed", "import"):
            if own_sets:
                execute_with_own_sets(self.job["code"], str(path), self.task)
            else:
                spec.loader.exec_module(self.task)
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not callable(getattr(self.task, name, None)):
                raise CandidateFault("contract", f"{name} is missing after the import")
        if not (isinstance(self.task.Model, type) and issubclass(self.task.Model, nn.Module)):
            raise CandidateFault("contract", "Model is no torch.nn.Module")

    def build(self) -> None:
        """Construct the model on the CPU under a fixed seed and move it, as the users of a row do."""
        seed_all(_MODEL_SEED)
        with self.guard("init_failed", "get_init_inputs"):
            arguments = self.task.get_init_inputs()
        if not isinstance(arguments, list | tuple):
            raise CandidateFault("contract", f"get_init_inputs() returns {type(arguments).__name__}, no list")
        try:
            with self.guard("init_failed", "Model()"):
                self.model = self.task.Model(*arguments)
                self.memory.ask(lambda: trees.stored_bytes(self.state_of_model()))
                self.model = self.model.to(self.device).eval()
        except CandidateFault as fault:
            if [type(a) for a in arguments] == [list, dict]:  # KernelBook's dialect
                detail = f"get_init_inputs() returns [args, kwargs], no flat list ({fault.detail})"
                raise CandidateFault("contract", detail) from fault
            raise
        if any(is_lazy(p) for p in self.model.parameters()):
            raise CandidateFault("init_failed", "Model(): lazy parameters, without values before a forward")

    def draw(self, number: int, *, made_on_cpu: bool = False) -> list[Any]:
        """Return a fresh draw of inputs on the device. The same number gives the same draw.

        They are made on the device as well, which is far quicker, unless the CPU is asked for.
        """
        place = DrawnOn(self.device) if made_on_cpu else self.device

        def drawn() -> Any:
            seed_all(_FIRST_DRAW_SEED + number)
            with place:
                inputs = self.task.get_inputs()
            return inputs

        inputs = self._tried("inputs_failed", "get_inputs", drawn)
        if not isinstance(inputs, list | tuple):
            raise CandidateFault("contract", f"get_inputs() returns {type(inputs).__name__}, no list")
        return [trees.map_tensors(item, self._placed) for item in inputs]

    def _placed(self, tensor: torch.Tensor) -> torch.Tensor:
        """Move an input to the device as a leaf, which can be copied with its strides."""
        moved = tensor.to(self.device)
        return moved if moved.is_leaf else moved.detach().requires_grad_(moved.requires_grad)

    def forward(self, inputs: list[Any], model: nn.Module | None = None) -> Any:
        """Run one eager forward to its end, as every consumer does: without gradients."""

        def run() -> Any:
            output = (self.model if model is None else model)(*inputs)
            self.synchronize()
            return output

        with torch.no_grad():
            return self._tried("forward_failed", "forward", run)

    def bytes_of_forward(self) -> int:
        """Return the device memory that a forward needs, with inputs and model."""
        return trees.stored_bytes([self.state_of_model(), self.inputs]) + self.intermediate_bytes

    def state_of_model(self) -> list[torch.Tensor]:
        """Return parameters and buffers."""
        return [*self.model.parameters(), *self.model.buffers()]

    def fresh_inputs(self) -> list[Any]:
        """Return a copy of draw 0."""
        return self.copy(self.inputs)

    def copy(self, inputs: list[Any]) -> list[Any]:
        """Copy inputs with their strides and with what they share; a clone would be dense."""
        return self._tried("inputs_failed", "copying the inputs", lambda: copy.deepcopy(inputs))

    def copy_of_model(self) -> nn.Module:
        """Copy the model with its state. Raises CandidateFault where it holds something that has no copy."""
        return self._tried("forward_failed", "copying the model", lambda: copy.deepcopy(self.model))

    def synchronize(self) -> None:
        """Wait for the device; device-side errors surface here."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _tried(self, fault: str, where: str, call: Callable[[], Result]) -> Result:
        """Call candidate code, with more of the device's memory where that runs out."""
        with self.guard(fault, where):
            return self.memory.enough_for(call)

    def guard(self, fault: str, where: str) -> "_Guard":
        """Run candidate code: watch its conduct, and turn whatever it raises into a CandidateFault."""
        return _Guard(self.watch, fault, where)


class _Guard:
    def __init__(self, watch: Watch, fault: str, where: str) -> None:
        self._candidate = watch.candidate()
        self._fault = fault
        self._where = where

    def __enter__(self) -> None:
        self._candidate.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        self._candidate.__exit__(None, None, None)
        if error is None or isinstance(error, CandidateFault):
            return
        if isinstance(error, CannotTell):
            return
        if not isinstance(error, Exception):
            raise CandidateFault("crashed", f"{self._where}: raised {type(error).__name__}") from error
        fault = "out_of_memory" if is_out_of_memory(error) else self._fault
        raise CandidateFault(fault, f"{self._where}: {one_line(error)}") from error


def resident_peak_bytes() -> int:
    """Return the largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
