"""Does the task only compute?"""

from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding


@filter_of(Stage.CONDUCT, "side_effects")
def side_effects(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """State of the whole process that the candidate changed would change the next task as well."""
    return (
        Finding(reason=Reason.SIDE_EFFECT, evidence={"effects": m.side_effects}) if m.side_effects else None
    )


@filter_of(Stage.CONDUCT, "mutated_inputs")
def mutated_inputs(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Harnesses hand the same inputs to reference and solution, so a forward must not write to them."""
    if not m.mutated_inputs:
        return None
    return Finding(reason=Reason.MUTATES_INPUT, evidence={"positions": m.mutated_inputs})
