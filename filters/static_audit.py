"""Judging a set by its text alone: nothing is executed, so a set can be looked at in minutes on any machine.

A task that the text does not convict is not accepted: it needs to be measured.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from composer.candidate import Candidate
from composer.source_names import UnreadableCodeError
from filters.judge import claim_of, judge
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.screening import screened, set_member
from filters.similarity import duplicates, labels_absent_from_code, static_random_calls
from filters.verdict import Finding, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFacts:
    """What the text of a task shows; looked for in every task, also where it has a reason already."""

    exact_repeat_of: int | None = None
    """Index of the first task with the same text."""
    canonical_repeat_of: int | None = None
    """Index of the task that this one repeats but for names, sizes and constants."""
    near_repeat_of: int | None = None
    """Index of a task with the same operators in the same order and near-equal structure."""
    absent_labels: tuple[str, ...] = ()
    """Claimed operators that the code does not even mention."""
    kb_signature_match: str | None = None
    """KernelBench's task with the same operators in the same order."""
    random_calls: tuple[str, ...] = ()
    """Operators in forward that draw random numbers."""

    def shown(self) -> dict[str, Any]:
        """Return what there is to see, by name."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) not in (None, ())
        }


def judge_texts(
    candidates: Sequence[Candidate], policy: Policy, advance: Callable[[], None]
) -> tuple[list[Verdict], dict[str, Measurement]]:
    """Judge every candidate; `advance` is called after each. Returns verdicts, and similarity facts by id."""
    ordered = sorted(candidates, key=lambda candidate: candidate.index)
    measurements: dict[str, Measurement] = {}
    repeats = _repeats(ordered)
    verdicts = []
    for candidate in ordered:
        if candidate.id not in measurements:
            measurements[candidate.id] = screened(candidate)
        facts = _facts(candidate, measurements[candidate.id], repeats[candidate.index])
        verdicts.append(_verdict(candidate, measurements[candidate.id], policy, facts))
        advance()
    return verdicts, measurements


def count_shown(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Count for each kind of fact the tasks that show it; one task may show several."""
    counts = dict.fromkeys((field.name for field in fields(TextFacts)), 0)
    for verdict in verdicts:
        for name in verdict.evidence.get("text", {}):
            counts[name] += 1
    return counts


def _repeats(ordered: Sequence[Candidate]) -> dict[int, TextFacts]:
    """Return for each index what it repeats."""
    first_with_text: dict[str, int] = {}
    members = []
    for candidate in ordered:
        first_with_text.setdefault(candidate.id, candidate.index)
        try:
            members.append(set_member(candidate, None))
        except UnreadableCodeError:
            continue  # its text is rejected by the filters of the source
    found = duplicates(members)
    repeats = {}
    for candidate in ordered:
        first = first_with_text[candidate.id]
        repeat = found.get(candidate.index)
        repeats[candidate.index] = TextFacts(
            exact_repeat_of=first if first != candidate.index else None,
            canonical_repeat_of=repeat.of if repeat and repeat.how == "canonical_form" else None,
            near_repeat_of=repeat.of if repeat and repeat.how == "signature" else None,
        )
    return repeats


def _facts(candidate: Candidate, similarity: Measurement, repeats: TextFacts) -> TextFacts:
    try:
        return replace(
            repeats,
            absent_labels=labels_absent_from_code(candidate.code, claim_of(candidate).requested_ops),
            kb_signature_match=similarity.kb_signature_match or None,
            random_calls=static_random_calls(candidate.code),
        )
    except UnreadableCodeError:
        return repeats


def _verdict(candidate: Candidate, similarity: Measurement, policy: Policy, facts: TextFacts) -> Verdict:
    verdict = judge(candidate, similarity, policy)
    found = None if verdict.outcome == "rejected" else _finding(facts)
    if found is None:
        outcome, reason, stage, evidence = verdict.outcome, verdict.reason, verdict.stage, verdict.evidence
    else:
        outcome, (stage, finding) = "rejected", found
        reason, evidence = finding.reason, finding.evidence
    return Verdict(
        index=candidate.index,
        id=candidate.id,
        outcome=outcome,
        reason=reason,
        stage=stage,
        evidence={**evidence, "text": facts.shown()},
    )


def _finding(facts: TextFacts) -> tuple[Stage, Finding] | None:
    """Return the first thing that the text shows and that only an execution shows better."""
    if facts.absent_labels:
        return Stage.LABELS, Finding(reason=Reason.LABEL_MISMATCH, evidence={"absent": facts.absent_labels})
    for original in (facts.canonical_repeat_of, facts.near_repeat_of):
        if original is not None:
            return Stage.SET, Finding(reason=Reason.DUPLICATE, evidence={"of": original})
    return None
