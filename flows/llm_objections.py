"""What a model is told of a task that was not accepted: the rule, and the exact error or evidence."""

import json
from collections.abc import Mapping
from types import MappingProxyType

from composer.candidate import Candidate
from filters.judging.source import source_finding
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Finding, Verdict

EVIDENCE_MAX = 1500
"""Characters of the evidence that a model is shown."""

RULES: Mapping[Reason, str] = MappingProxyType(
    {
        Reason.SYNTAX: "it is not valid Python",
        Reason.TOO_LARGE: "the module is too long",
        Reason.CONTRACT: "it must define exactly one Model, one get_inputs and one get_init_inputs",
        Reason.FORBIDDEN: "it uses what a task may not use",
        Reason.INIT_FAILED: "Model(*get_init_inputs()) failed",
        Reason.INPUTS_FAILED: "get_inputs() failed",
        Reason.FIXED_INPUTS: "get_inputs() returns the same values in every call",
        Reason.FORWARD_FAILED: "forward failed",
        Reason.OUT_OF_MEMORY: "it runs out of memory; choose smaller sizes",
        Reason.TOO_MUCH_MEMORY: "it needs too much memory; choose smaller sizes",
        Reason.SIDE_EFFECT: "it changes state of the process",
        Reason.MUTATES_INPUT: "forward changes its inputs",
        Reason.STOCHASTIC: "its output is random",
        Reason.STATEFUL: "forward keeps state from call to call",
        Reason.UNSUPPORTED_OUTPUT: "the output must be tensors",
        Reason.NON_FINITE: "the output holds NaN or infinite values",
        Reason.EMPTY_OUTPUT: "the output is empty",
        Reason.CONSTANT_OUTPUT: "the output hardly depends on the input: a constant passes for it",
        Reason.VANISHING_OUTPUT: "the output is so close to zero that zeros pass for it",
        Reason.IDENTITY_OUTPUT: "the output is so close to an input that the input passes for it",
        Reason.INPUT_IGNORED: "an input has no effect on the output",
        Reason.PARAMETER_IGNORED: "parameters have no effect on the output",
        Reason.LABEL_MISMATCH: "a requested operator does not run",
        Reason.OPERATOR_IGNORED: "an operator could be left out without changing the output",
        Reason.TOO_MANY_OPS: "it uses more than five operators",
        Reason.TOO_FAST: "it runs too fast to be timed; choose larger sizes",
        Reason.TOO_SLOW: "it runs too slowly; choose smaller sizes",
    }
)
"""Rules that a model can be asked to keep; for all others another try would be another task."""


def source_objection(candidate: Candidate, policy: Policy) -> str | None:
    """Return what the text alone shows to be wrong."""
    if candidate.reply_fault:
        return None
    finding = source_finding(candidate.code, policy)
    return _text(finding) if finding else None


def objection_to(verdict: Verdict) -> str | None:
    """Return what the model is told of a rejection, None where it cannot help."""
    if verdict.outcome != "rejected" or verdict.reason not in RULES:
        return None
    return _text(Finding(reason=verdict.reason, evidence=verdict.evidence))


def reply_verdict(candidate: Candidate) -> Verdict | None:
    """Return the rejection of a candidate whose reply held no task, None for any other."""
    if not candidate.reply_fault:
        return None
    return Verdict(
        index=candidate.index,
        id=candidate.id,
        outcome="rejected",
        reason=Reason(candidate.reply_fault),
        stage=Stage.REPLY,
        evidence={"said": candidate.code[:200]},
    )


def _text(finding: Finding) -> str:
    evidence = json.dumps(finding.evidence, ensure_ascii=False)[:EVIDENCE_MAX]
    shown = f" ({evidence})" if finding.evidence else ""
    return f"{RULES[finding.reason]}{shown}. [{finding.reason}]"
