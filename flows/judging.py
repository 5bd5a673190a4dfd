"""Judges the candidates of a ledger one after the other, with few of them in memory.

What a candidate is by itself is judged once, where it was measured or here, and kept in the ledger; what the
whole set adds (repeats, surplus) is found anew each time. The same verdicts as `pipeline.verdicts_of`.
"""

import dataclasses
import functools
import hashlib
from array import array
from collections.abc import Iterator, Sequence

from composer.candidate import Candidate
from data.ledger import Ledger
from data.ledger_layout import JudgedRecord, verdict_from, verdict_text
from filters.environment import Environment
from filters.judge import claim_of, judge, merged
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason
from filters.screening import set_member
from filters.similarity import SetMember
from filters.verdict import Verdict
from flows.llm_objections import reply_verdict
from flows.settings import Settings


def judge_ledger(
    ledger: Ledger, environments: Sequence[Environment], settings: Settings, *, again: bool = False
) -> None:
    """Replace the verdicts of a ledger; touches no device. With `again` no kept verdict counts."""
    alone = _alone(ledger, [environment.key for environment in environments], settings.policy, again)
    ledger.replace_verdicts(merged(alone, settings.run.count))


def judged_record(
    candidate: Candidate, measurement: Measurement | None, verdict: Verdict, environment: str, policy: Policy
) -> JudgedRecord | None:
    """Return what the ledger keeps of a candidate that was judged by itself; None while that is open."""
    if verdict.outcome == "infrastructure":
        return None
    member = set_member(candidate, measurement) if verdict.outcome == "accepted" else None
    return JudgedRecord(
        id=candidate.id,
        environment=environment,
        basis=basis_of(candidate, policy),
        verdict=verdict_text(verdict),
        family=member.family_id if member else "",
        signature="\n".join(member.signature) if member else "",
        sequence=array("I", member.sequence).tobytes() if member else b"",
    )


def basis_of(candidate: Candidate, policy: Policy) -> str:
    """Return a digest of what a verdict depends on besides text and measurement."""
    claim = claim_of(candidate)
    return _digest(_policy_text(policy), *claim.requested_ops, str(claim.whole_layer))


@functools.lru_cache(maxsize=1)
def _policy_text(policy: Policy) -> str:
    return policy.model_dump_json()


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _alone(
    ledger: Ledger, keys: Sequence[str], policy: Policy, again: bool
) -> Iterator[tuple[Verdict, SetMember | None]]:
    """Yield what each candidate is by itself; what is judged here is kept."""
    for candidate in ledger.each_candidate():
        fault = reply_verdict(candidate)
        if fault:
            yield fault, None
            continue
        kept = {} if again else ledger.judged(candidate.id, basis_of(candidate, policy))
        found = next((kept[key] for key in (*keys, "") if key in kept), None)
        if found:
            verdict = dataclasses.replace(verdict_from(found.verdict), index=candidate.index)
        else:
            measurement, key = measured_first(ledger, candidate.id, keys)
            verdict = judge(candidate, measurement, policy)
            found = judged_record(candidate, measurement, verdict, key, policy)
            if found:
                ledger.keep_judged([found])
        yield verdict, _member(candidate.index, found) if found else None


def measured_first(ledger: Ledger, id: str, keys: Sequence[str]) -> tuple[Measurement | None, str]:
    """Return the measurement that counts, and its environment's key; see `flows.measured`."""
    found = ledger.measured(id)
    known = [(found[key], key) for key in keys if key in found]
    whole = [each for each in known if each[0].fault != Reason.WORKER_LOST]
    return next(iter(whole or known), (None, ""))


def _member(index: int, record: JudgedRecord) -> SetMember | None:
    if not record.family:
        return None
    signature = record.signature.split("\n") if record.signature else []
    sequence = array("I", record.sequence)
    return SetMember(index=index, family_id=record.family, signature=signature, sequence=sequence)
