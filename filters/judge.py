"""From a candidate and its facts to one verdict; touches no device and can be repeated at any time."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from composer.candidate import Candidate
from filters.judging import first_finding, missing_facts
from filters.judging.source import source_finding
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.screening import set_member
from filters.similarity import Repeat, Repeats, SetMember
from filters.verdict import Claim, Finding, Verdict

_FAULTS = frozenset(
    """init_failed inputs_failed forward_failed out_of_memory too_much_memory timeout crashed side_effect
    compile_failed""".split()
)
_STAGES = {stage.value: stage for stage in Stage}


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

    The order is the design's: the text (unless its filters are skipped, similarity included), then
    every filter whose facts are known, then the fault that ended the measuring, then what is missing.
    """
    without = Stage.SIMILARITY if skip_source_filters else None
    if not skip_source_filters:
        finding = source_finding(candidate.code, policy)
        if finding is not None:
            return _rejected(candidate, Stage.SOURCE, finding)
    if measurement is None:
        return _open(candidate, Reason.NEEDS_MEASUREMENT, {"missing": "everything"})
    if measurement.fault == Reason.WORKER_LOST:
        return _open(candidate, Reason.WORKER_LOST, {"detail": measurement.fault_detail})
    found = first_finding(measurement, policy, claim_of(candidate), without=without)
    if found is not None:
        return _rejected(candidate, *found)
    if measurement.fault is not None:
        return _rejected(candidate, *_fault_of(measurement.fault, measurement))
    missing = missing_facts(measurement, without=without)
    if missing:
        return _open(candidate, Reason.NEEDS_MEASUREMENT, {"missing": list(missing)})
    return Verdict(index=candidate.index, id=candidate.id, outcome="accepted", reason=Reason.ACCEPTED)


def judge_set(
    candidates: Sequence[Candidate],
    verdicts: Mapping[int, Verdict],
    measurements: Mapping[str, Measurement],
    wanted: int | None = None,
) -> list[Verdict]:
    """Return the verdicts in the order of the index, with repeats and surplus marked.

    Of rows that repeat each other the lowest index stays; beyond `wanted` accepted rows by index the
    rest is surplus.
    """
    ordered = sorted(candidates, key=lambda candidate: candidate.index)
    alone = (
        (verdict, set_member(each, measurements.get(each.id)) if verdict.outcome == "accepted" else None)
        for each in ordered
        for verdict in (verdicts[each.index],)
    )
    return list(merged(alone, wanted))


def merged(alone: Iterable[tuple[Verdict, SetMember | None]], wanted: int | None = None) -> Iterator[Verdict]:
    """Yield `judge_set`'s verdicts as the candidates come, in the order of their index.

    With each verdict comes what is compared with the rest of the set, at least for the accepted ones.
    """
    repeats = Repeats()
    accepted = 0
    for verdict, member in alone:
        if verdict.outcome == "accepted":
            repeat = repeats.add(member) if member is not None else None
            if repeat is not None:
                verdict = _rejected(verdict, Stage.SET, _repeats(repeat))
            else:
                accepted += 1
                if wanted is not None and accepted > wanted:
                    verdict = dataclasses.replace(verdict, outcome="surplus")
        yield verdict


def _repeats(repeat: Repeat) -> Finding:
    evidence = {"of": repeat.of, "by": repeat.how, "score": repeat.score}
    return Finding(reason=Reason.DUPLICATE, evidence=evidence)


def _fault_of(fault: str, measurement: Measurement) -> tuple[Stage, Finding]:
    """Return stage and finding; words that are not ours come from a worker taken over by its candidate."""
    reason = Reason(fault) if fault in _FAULTS else Reason.CRASHED
    stage = _STAGES.get(measurement.fault_stage or "", Stage.BUILD)
    return stage, Finding(reason=reason, evidence={"detail": measurement.fault_detail})


def _rejected(candidate: Candidate | Verdict, stage: Stage, finding: Finding) -> Verdict:
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
