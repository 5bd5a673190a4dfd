"""From a candidate and its facts to one verdict; touches no device and can be repeated at any time."""

import dataclasses
from collections.abc import Mapping, Sequence

from composer.candidate import Candidate
from filters.judging import first_finding, missing_facts
from filters.judging.source import source_finding
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding, Verdict

_LOST = "worker_lost"


def claim_of(candidate: Candidate) -> Claim:
    """Return what the candidate says of itself."""
    if candidate.data_source == "transformers":
        return Claim(whole_layer=True)
    return Claim(requested_ops=candidate.requested_ops)


def judge(
    candidate: Candidate,
    measurement: Measurement | None,
    policy: Policy,
    *,
    skip_source_filters: bool = False,
) -> Verdict:
    """Judge one candidate by itself; `judge_set` adds what only the whole set tells.

    The order is the design's: the text, then every filter whose facts are known, then the fault that
    ended the measuring, then what is missing.
    """
    if not skip_source_filters:
        finding = source_finding(candidate.code, policy)
        if finding is not None:
            return _rejected(candidate, Stage.SOURCE, finding)
    if measurement is None:
        return _open(candidate, Reason.NEEDS_MEASUREMENT, {"missing": "everything"})
    if measurement.fault == _LOST:
        return _open(candidate, Reason.WORKER_LOST, {"detail": measurement.fault_detail})
    found = first_finding(measurement, policy, claim_of(candidate))
    if found is not None:
        return _rejected(candidate, *found)
    if measurement.fault is not None:
        stage = Stage(measurement.fault_stage or Stage.BUILD)
        finding = Finding(reason=Reason(measurement.fault), evidence={"detail": measurement.fault_detail})
        return _rejected(candidate, stage, finding)
    missing = missing_facts(measurement)
    if missing:
        return _open(candidate, Reason.NEEDS_MEASUREMENT, {"missing": list(missing)})
    return Verdict(index=candidate.index, id=candidate.id, outcome="accepted", reason=Reason.ACCEPTED)


def judge_set(
    candidates: Sequence[Candidate], verdicts: Mapping[int, Verdict], wanted: int | None = None
) -> list[Verdict]:
    """Return the verdicts in the order of the candidates, with repeats and surplus marked.

    Of rows that repeat each other the lowest index stays; beyond `wanted` accepted rows by index the
    rest is surplus.
    """
    judged = []
    first_by_id: dict[str, int] = {}
    accepted = 0
    for candidate in sorted(candidates, key=lambda c: c.index):
        verdict = verdicts[candidate.index]
        if verdict.outcome == "accepted":
            earlier = first_by_id.setdefault(candidate.id, candidate.index)
            if earlier != candidate.index:
                finding = Finding(reason=Reason.DUPLICATE, evidence={"of": earlier, "by": "exact text"})
                verdict = _rejected(candidate, Stage.SET, finding)
            else:
                accepted += 1
                if wanted is not None and accepted > wanted:
                    verdict = dataclasses.replace(verdict, outcome="surplus")
        judged.append(verdict)
    return judged


def _rejected(candidate: Candidate, stage: Stage, finding: Finding) -> Verdict:
    return Verdict(
        index=candidate.index,
        id=candidate.id,
        outcome="rejected",
        reason=finding.reason,
        stage=stage,
        evidence=finding.evidence,
    )


def _open(candidate: Candidate, reason: Reason, evidence: dict[str, object]) -> Verdict:
    return Verdict(
        index=candidate.index, id=candidate.id, outcome="infrastructure", reason=reason, evidence=evidence
    )
