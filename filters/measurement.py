"""What the worker saw of one candidate on one machine: facts, no opinions.

One flat frozen record. `None` means "not measured": the candidate was cut before, or the fact
does not apply. It travels as JSON (worker to parent, ledger, `verdicts.parquet`), never as a pickle.
Units stand in the names: `_ms`, `_mb` (10^6 bytes), `_bytes`, `_seconds`.
"""

import dataclasses
import json
import types
import typing
from dataclasses import dataclass
from typing import Any

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Facts about one candidate; grouped by the stage that finds them."""

    # How the measuring ended.
    fault: str | None = None
    """What stopped the worker: `timeout`, `crashed`, `out_of_memory`, `too_much_memory`, `init_failed`,
    `inputs_failed`, `forward_failed`, `compile_failed`, or `worker_lost` (ours, not the candidate's)."""
    fault_stage: str | None = None
    """The stage during which it stopped."""
    fault_detail: str | None = None
    """One line: exception text, signal name, limit."""
    stages_done: tuple[str, ...] = ()
    """Stages whose facts are complete, in order."""
    wall_seconds: float | None = None
    """Time from the start of the worker to its end."""
    start_seconds: float | None = None
    """Time until its first stage: the fork, and the device's context."""
    stage_seconds: tuple[float, ...] | None = None
    """Time that each of `stages_done` took, waiting for a neighbour's timing included."""

    # similarity, found from the text by the parent
    kb_ast_similarity: float | None = None
    """Highest AST similarity to a KernelBench task by the paper's metric (class `Model`), 0 to 1."""
    kb_nearest: str | None = None
    """The task that has it, such as `level1/19_ReLU`."""
    kb_signature_match: str | None = None
    """A KernelBench task with an equal ordered signature, empty string if there is none."""
    kb_operator_similarity: float | None = None
    """Highest operator-aware similarity to a KernelBench task, 0 to 1."""
    kb_operator_nearest: str | None = None
    """The task that has it."""
    kb_same_operators_similarity: float | None = None
    """The same among the tasks with an equal multiset of operators; 0 where there are none."""
    kb_same_operators_nearest: str | None = None
    """The task that has it, empty string if there is none."""

    # build
    contract_fault: str | None = None
    """What of the run-time contract is broken, such as a `get_init_inputs()` that returns no flat list."""
    inputs_fixed: bool | None = None
    """True where all draws of `get_inputs()` are equal bit for bit."""
    input_shapes: Shapes | None = None
    """Shapes of the tensors among the inputs, in order; Python scalars are left out."""
    input_dtypes: tuple[str, ...] | None = None
    """Dtypes of the same tensors, such as `float32`."""
    input_bytes: int | None = None
    """Sum over the input tensors."""
    n_params: int | None = None
    """Elements of all parameters together."""
    output_shapes: Shapes | None = None
    """Shapes of the tensors of the output tree, in order."""
    output_dtypes: tuple[str, ...] | None = None
    """Dtypes of the same tensors."""
    peak_memory_mb: float | None = None
    """Largest memory in use over one forward, parameters and inputs included."""

    # conduct
    side_effects: tuple[str, ...] | None = None
    """Process-wide state that the candidate changed, such as `default dtype`."""
    mutated_inputs: tuple[int, ...] | None = None
    """Positions of inputs whose values or version counters changed."""

    # repeatability
    rng_consumed: tuple[str, ...] | None = None
    """Generators that forward advanced: `cpu`, `cuda`, `python`, `numpy`."""
    seed_changes_output: bool | None = None
    """Another seed before forward changes the output's bits."""
    repeats_equal: bool | None = None
    """Five forwards on one input agree bit for bit."""
    state_changed: bool | None = None
    """A forward in eval mode changed the module's tensors or attributes."""
    train_eval_same: bool | None = None
    """Train mode gives the bits of eval mode."""
    repeated_scatter_targets: str | None = None
    """The call whose result torch leaves open: an assignment scatter with repeated indices, or a sort of
    equal elements whose order decides the output; empty string if there is none."""
    output_digest: str | None = None
    """sha256 over the output's bits for the fixed seed; compared with that of a fresh process."""
    fresh_process_equal: bool | None = None
    """The same digest in a new process with another hash seed."""

    # output
    unsupported_output: str | None = None
    """What in the output tree is not a plain tensor or None, empty string if all is."""
    non_finite_values: int | None = None
    """NaN and infinite values among the output's elements."""
    output_elements: int | None = None
    """Elements of all output tensors together."""

    # degenerate
    passing_answers: tuple[str, ...] | None = None
    """Trivial answers that pass `allclose(atol = rtol = 1e-2)` on every draw: `zeros`, `constant`,
    `input`, `other_draw`."""
    varies_along_batch: bool | None = None
    """The output differs along its dimension 0; only where that is an input's dimension 0."""
    ignored_inputs: tuple[int, ...] | None = None
    """Positions of tensor inputs without effect on the output."""
    inert_parameters: tuple[str, ...] | None = None
    """Parameters without effect on the output."""
    inert_parameter_share: float | None = None
    """Largest share of all elements that one inert parameter holds."""

    # labels
    ops: tuple[str, ...] | None = None
    """Operators that ran: distinct canonical public names in the order of their first call."""
    signature: tuple[str, ...] | None = None
    """Ordered executed signature used by similarity; arithmetic included."""
    aten_ops: tuple[str, ...] | None = None
    """Distinct aten operators, sorted."""
    aten_nodes: int | None = None
    """Aten calls of one forward."""
    ineffective_ops: tuple[str, ...] | None = None
    """Operators of `ops` that could be left out without changing the output."""
    flops: int | None = None
    """Floating-point operations of the matrix products and convolutions of one forward."""
    bytes: int | None = None
    """Bytes read and written by the aten calls of one forward."""

    # runtime
    eager_ms: float | None = None
    """Median."""
    eager_ms_iqr: float | None = None
    """Interquartile range."""
    eager_samples: int | None = None
    """Number of timed calls."""
    tensor_time_share: float | None = None
    """Share of the wall time of a forward that is spent in tensor work, 0 to 1."""

    # compile
    graphs: int | None = None
    """Graphs that torch.compile captured."""
    graph_breaks: int | None = None
    """Places where torch.compile went back to Python."""
    compile_seconds: float | None = None
    """Time of the first compiled call."""
    compile_ms: float | None = None
    """Median run time of the compiled model."""
    compile_ms_iqr: float | None = None
    """Interquartile range."""
    compile_samples: int | None = None
    """Number of timed calls of the compiled model."""

    # compare
    structure_fault: str | None = None
    """First difference in tree, shape or dtype between eager and compiled, empty string if none."""
    compared_with: str | None = None
    """`fp64` where a double-precision run arbitrated, else `allclose`."""
    eager_error: float | None = None
    """Largest relative RMSE of a leaf of the eager output against fp64."""
    compiled_error: float | None = None
    """The same of the compiled output."""
    allowed_error: float | None = None
    """What the compiled error may be at most for the worst leaf."""
    compiled_allclose: bool | None = None
    """Eager and compiled agree by plain allclose at the dtype's tolerance; None where fp64 arbitrated."""

    def to_json(self) -> str:
        """Return the facts that are known, as a JSON object."""
        known = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        return json.dumps(known, ensure_ascii=True)

    @classmethod
    def from_json(cls, text: str) -> "Measurement":
        """Read what `to_json` wrote. Raises ValueError for fields or types that are not ours."""
        return cls(**checked_facts(json.loads(text)))

    def with_facts(self, facts: dict[str, Any]) -> "Measurement":
        """Return a copy with the given facts, types checked. Raises ValueError."""
        return dataclasses.replace(self, **checked_facts(facts))


_TYPES = typing.get_type_hints(Measurement)


def checked_facts(facts: Any) -> dict[str, Any]:
    """Check a decoded JSON object against the record: a worker may have been taken over by its candidate."""
    if not isinstance(facts, dict):
        raise ValueError(f"facts are no JSON object but {type(facts).__name__}")
    unknown = facts.keys() - _TYPES.keys()
    if unknown:
        raise ValueError(f"unknown facts: {', '.join(sorted(map(str, unknown)))}")
    return {name: _as(_TYPES[name], value, name) for name, value in facts.items()}


def _as(wanted: Any, value: Any, name: str) -> Any:
    """Return the value as the annotated type: JSON lists become tuples, ints pass for floats."""
    origin = typing.get_origin(wanted)
    if origin in (types.UnionType, typing.Union):
        if value is None:
            return None
        (inner,) = (a for a in typing.get_args(wanted) if a is not type(None))
        return _as(inner, value, name)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{name} should be a list, is {type(value).__name__}")
        return tuple(_as(typing.get_args(wanted)[0], item, name) for item in value)
    if wanted is float and type(value) is int:
        return float(value)
    if wanted is str and isinstance(value, str):
        return str(value)  # a member of `Reason` or `Stage` as well
    if type(value) is not wanted:
        raise ValueError(f"{name} should be {wanted.__name__}, is {type(value).__name__}")
    return value
