"""Is the task worth a kernel, and short enough to practise on?"""

from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding


@filter_of(Stage.RUNTIME, "eager_ms")
def too_fast(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Below the window launch overhead decides, not the kernel."""
    assert m.eager_ms is not None
    if m.eager_ms >= policy.eager_ms_min:
        return None
    return Finding(reason=Reason.TOO_FAST, evidence={"eager_ms": m.eager_ms, "at_least": policy.eager_ms_min})


@filter_of(Stage.RUNTIME, "eager_ms")
def too_slow(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Above the window a training step waits for one task."""
    assert m.eager_ms is not None
    if m.eager_ms <= policy.eager_ms_max:
        return None
    return Finding(reason=Reason.TOO_SLOW, evidence={"eager_ms": m.eager_ms, "at_most": policy.eager_ms_max})


@filter_of(Stage.RUNTIME, "tensor_time_share")
def padded(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Time that is spent sleeping or in Python loops is no work for a kernel.

    Asked last: of a task that is too fast, what Python takes is most of the time.
    """
    assert m.tensor_time_share is not None
    if m.tensor_time_share >= policy.tensor_time_share_min:
        return None
    evidence = {"tensor_time_share": m.tensor_time_share, "eager_ms": m.eager_ms}
    return Finding(reason=Reason.PADDED, evidence=evidence)
