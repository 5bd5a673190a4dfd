"""Can the output be compared element by element?"""

from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding


@filter_of(Stage.OUTPUT, "unsupported_output")
def plain_tensors(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Verifiers take trees of plain tensors; 28 rows of Ops-6K return modules, numbers or CPU scalars."""
    if not m.unsupported_output:
        return None
    return Finding(reason=Reason.UNSUPPORTED_OUTPUT, evidence={"leaves": m.unsupported_output})


@filter_of(Stage.OUTPUT, "output_elements")
def empty(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """A leaf without elements."""
    if m.output_elements:
        return None
    return Finding(reason=Reason.EMPTY_OUTPUT, evidence={"shapes": m.output_shapes})


@filter_of(Stage.OUTPUT, "non_finite_values")
def finite(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """NaN equals nothing, so no solution can pass."""
    if not m.non_finite_values:
        return None
    return Finding(reason=Reason.NON_FINITE, evidence={"values": m.non_finite_values})
