"""Is torch.compile a usable second baseline?"""

from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding


@filter_of(Stage.COMPILE, "graphs")
def not_compiled(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """The compiler gave up everywhere and ran eager code. Graph breaks beside a graph are allowed."""
    if m.graphs:
        return None
    return Finding(reason=Reason.NOT_COMPILED, evidence={"graph_breaks": m.graph_breaks})


@filter_of(Stage.COMPARE, "structure_fault")
def other_structure(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Tree, shapes and dtypes must be the same."""
    if not m.structure_fault:
        return None
    return Finding(reason=Reason.COMPILE_MISMATCH, evidence={"difference": m.structure_fault})


@filter_of(Stage.COMPARE, "compared_with")
def ill_conditioned(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Eager itself is far from the double-precision result, so nobody can be right."""
    if m.eager_error is None or m.eager_error <= policy.eager_error_max:
        return None
    return Finding(reason=Reason.ILL_CONDITIONED, evidence={"eager_error": m.eager_error})


@filter_of(Stage.COMPARE, "compared_with")
def compile_mismatch(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """The compiled output is further from the truth than rounding explains."""
    if m.compared_with == "allclose":
        return (
            None
            if m.compiled_allclose
            else Finding(reason=Reason.COMPILE_MISMATCH, evidence={"by": "allclose"})
        )
    if m.compiled_error is None or m.allowed_error is None or m.compiled_error <= m.allowed_error:
        return None
    evidence = {"compiled_error": m.compiled_error, "allowed": m.allowed_error, "eager_error": m.eager_error}
    return Finding(reason=Reason.COMPILE_MISMATCH, evidence=evidence)
