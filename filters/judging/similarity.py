"""Is a task a benchmark task in disguise?

A solver trained on it would be tested on what it has seen. Three instruments, because each is blind
somewhere: the paper's metric sees neither operators nor past a docstring; a signature does not see how
operators are wired; operator-aware similarity alone is above 0.9 for half of KernelBench's own tasks.
A shared skeleton alone is no reason.
"""

from filters.judging.registry import filter_of
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason, Stage
from filters.verdict import Claim, Finding


@filter_of(Stage.SIMILARITY, "kb_ast_similarity")
def similar_text(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """The paper's criterion: `PythonASTSimilarity` of class `Model` (arXiv 2602.24286, section 3.1)."""
    assert m.kb_ast_similarity is not None
    if m.kb_ast_similarity <= policy.kb_similarity_max:
        return None
    return _contaminated("ast_similarity", m.kb_nearest, m.kb_ast_similarity)


@filter_of(Stage.SIMILARITY, "kb_signature_match")
def equal_signature(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """The same operators in the same order, whatever the sizes: 102 rows of Ops-6K."""
    return _contaminated("signature", m.kb_signature_match, 1.0) if m.kb_signature_match else None


@filter_of(Stage.SIMILARITY, "kb_same_operators_similarity")
def similar_operators(m: Measurement, policy: Policy, claim: Claim) -> Finding | None:
    """Near-equal structure over the same operators."""
    assert m.kb_same_operators_similarity is not None
    if m.kb_same_operators_similarity <= policy.kb_similarity_max:
        return None
    return _contaminated("operator_similarity", m.kb_same_operators_nearest, m.kb_same_operators_similarity)


def _contaminated(instrument: str, nearest: str | None, score: float) -> Finding:
    evidence = {"instrument": instrument, "nearest": nearest, "score": score}
    return Finding(reason=Reason.CONTAMINATED, evidence=evidence)
