"""Can a user of the row build it and feed it?"""

from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding

GIB = 1 << 30


@filter_of(Stage.BUILD, "contract_fault")
def run_time_contract(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """KernelBench's contract: `Model(*get_init_inputs())(*get_inputs())`."""
    return Finding(reason=Reason.CONTRACT, evidence={"fault": m.contract_fault}) if m.contract_fault else None


@filter_of(Stage.BUILD, "inputs_fixed")
def fixed_inputs(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Inputs that are the same in every draw let a solver store the output."""
    return (
        Finding(reason=Reason.FIXED_INPUTS, evidence={"shapes": m.input_shapes}) if m.inputs_fixed else None
    )


@filter_of(Stage.BUILD, "input_bytes")
def large_inputs(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Inputs that do not fit beside two models and their copies on a common card."""
    assert m.input_bytes is not None
    if m.input_bytes <= policy.input_gib_max * GIB:
        return None
    return Finding(reason=Reason.TOO_MUCH_MEMORY, evidence={"input_bytes": m.input_bytes})


@filter_of(Stage.BUILD, "peak_memory_mb")
def peak_memory(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """The same for everything that one forward needs at once."""
    assert m.peak_memory_mb is not None
    if m.peak_memory_mb * 1e6 <= policy.peak_memory_gib_max * GIB:
        return None
    return Finding(reason=Reason.TOO_MUCH_MEMORY, evidence={"peak_memory_mb": m.peak_memory_mb})
