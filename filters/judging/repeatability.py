"""Is the task a pure function of inputs and weights?"""

from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding


@filter_of(Stage.REPEATABILITY, "rng_consumed", "seed_changes_output")
def random_forward(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """A forward that draws random numbers. Operator tags cannot tell: they mark attention as well."""
    if not m.rng_consumed:
        return None
    evidence = {"generators": m.rng_consumed, "seed_changes_output": m.seed_changes_output}
    return Finding(reason=Reason.STOCHASTIC, evidence=evidence)


@filter_of(Stage.REPEATABILITY, "state_changed")
def state_between_calls(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Counters, caches and buffers that one forward leaves for the next."""
    return Finding(reason=Reason.STATEFUL) if m.state_changed else None


@filter_of(Stage.REPEATABILITY, "repeated_scatter_targets")
def repeated_scatter(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Assignment through repeated indices, or the order of equal elements, is left open by torch.

    Two runs may agree all the same, and a right kernel with neither.
    """
    if not m.repeated_scatter_targets:
        return None
    return Finding(reason=Reason.NONDETERMINISTIC, evidence={"operator": m.repeated_scatter_targets})


@filter_of(Stage.REPEATABILITY, "repeats_equal", "seed_changes_output")
def unequal_repeats(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Bits that differ between forwards on one input."""
    if m.repeats_equal and not m.seed_changes_output:
        return None
    return Finding(reason=Reason.NONDETERMINISTIC, evidence={"where": "repeats in one process"})


@filter_of(Stage.REPEATABILITY, "fresh_process_equal")
def unequal_process(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Bits that differ in a process with another hash seed: the order of a set, for example."""
    if m.fresh_process_equal:
        return None
    return Finding(reason=Reason.NONDETERMINISTIC, evidence={"where": "a process with another hash seed"})
