"""Does it take work to produce the output, and does everything in the task take part?"""

from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding


@filter_of(Stage.DEGENERATE, "passing_answers")
def trivial_answer(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Outputs that a solver could reproduce without doing the work.

    A verifier compares with `torch.allclose(atol=1e-2, rtol=1e-2)`; whatever passes that against every
    draw of inputs makes the task worthless. 4 of 60 level-1 KernelBench problems accept all zeros
    (KernelBench issue 165).
    """
    passing = set(m.passing_answers or ())
    evidence = {"passing_answers": sorted(passing)}
    if "input" in passing:
        return Finding(reason=Reason.IDENTITY_OUTPUT, evidence=evidence)
    if "zeros" in passing:
        return Finding(reason=Reason.VANISHING_OUTPUT, evidence=evidence)
    return Finding(reason=Reason.CONSTANT_OUTPUT, evidence=evidence) if passing else None


@filter_of(Stage.DEGENERATE)
def same_for_every_sample(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """An output that repeats its first row along the batch."""
    if m.varies_along_batch is not False:
        return None
    return Finding(reason=Reason.CONSTANT_OUTPUT, evidence={"constant_along": "batch"})


@filter_of(Stage.DEGENERATE, "ignored_inputs")
def ignored_inputs(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Every tensor input must move the output."""
    if not m.ignored_inputs:
        return None
    return Finding(reason=Reason.INPUT_IGNORED, evidence={"positions": m.ignored_inputs})


@filter_of(Stage.DEGENERATE, "inert_parameter_share")
def ignored_parameters(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Every parameter with a noticeable share of all elements must move the output."""
    assert m.inert_parameter_share is not None
    if m.inert_parameter_share < policy.inert_parameter_share_max:
        return None
    return Finding(reason=Reason.PARAMETER_IGNORED, evidence={"parameters": m.inert_parameters})
