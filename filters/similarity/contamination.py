"""Is a task a benchmark task in disguise?

A solver trained on it would be tested on what it has seen. Three instruments, because each is blind
somewhere: the paper's metric sees neither operators nor past a docstring; a signature does not see how
operators are wired; operator-aware similarity alone is above 0.9 for half of KernelBench's own tasks.
A shared skeleton alone is no reason.
"""

from filters.policy import Policy
from filters.reasons import Reason
from filters.similarity.facts import SimilarityFacts
from filters.verdict import Finding


def contaminated(facts: SimilarityFacts, policy: Policy) -> Finding | None:
    """Return the first instrument that takes a task for one of the benchmark's."""
    limit = policy.kb_similarity_max
    if facts.kb_ast_similarity > limit:
        return _finding("ast_similarity", facts.kb_nearest, facts.kb_ast_similarity)
    if facts.kb_signature_match is not None:
        return _finding("signature", facts.kb_signature_match, None)
    if facts.kb_same_operators_similarity is not None and facts.kb_same_operators_similarity > limit:
        return _finding(
            "operator_similarity", facts.kb_same_operators_nearest, facts.kb_same_operators_similarity
        )
    return None


def _finding(instrument: str, nearest: str | None, score: float | None) -> Finding:
    evidence = {"instrument": instrument, "nearest": nearest, "score": score}
    return Finding(reason=Reason.CONTAMINATED, evidence=evidence)
