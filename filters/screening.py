"""What the text alone tells of a candidate: facts found in the parent, without executing anything."""

import threading
from functools import lru_cache

from composer.candidate import Candidate
from composer.canonical import family_id
from composer.source_names import UnreadableCodeError
from filters.measurement import Measurement
from filters.similarity import SetMember, fingerprint, shipped_reference, similarity

_REFERENCE_LOCK = threading.Lock()
"""A comparison grows the reference's forest for a moment."""


def screened(candidate: Candidate, measurement: Measurement | None = None) -> Measurement:
    """Return the measurement with the similarity to KernelBench's tasks filled in.

    The executed signature counts once it is known; until then the one that is read from the text. Text
    that cannot be analysed has no similarity, and is rejected for other reasons.
    """
    measurement = measurement or Measurement()
    try:
        with _REFERENCE_LOCK:
            facts = similarity(candidate.code, measurement.signature, shipped_reference())
    except UnreadableCodeError:
        return measurement
    return measurement.with_facts(
        {
            "kb_ast_similarity": facts.kb_ast_similarity,
            "kb_nearest": facts.kb_nearest,
            "kb_signature_match": facts.kb_signature_match or "",
            "kb_operator_similarity": facts.kb_operator_similarity,
            "kb_operator_nearest": facts.kb_operator_nearest,
            "kb_same_operators_similarity": facts.kb_same_operators_similarity or 0.0,
            "kb_same_operators_nearest": facts.kb_same_operators_nearest or "",
        }
    )


def set_member(candidate: Candidate, measurement: Measurement | None) -> SetMember:
    """Return what of a candidate is compared with the rest of its set. Raises UnreadableCodeError."""
    signature = measurement.signature if measurement is not None else None
    family, sequence, read_signature = _of_text(candidate.code)
    return SetMember(
        index=candidate.index,
        family_id=family,
        signature=read_signature if signature is None else signature,
        sequence=sequence,
    )


@lru_cache(maxsize=1 << 16)
def _of_text(code: str) -> tuple[str, tuple[int, ...], tuple[str, ...]]:
    """Return canonical form, operator sequence and signature of a text; each judging asks again."""
    read = fingerprint(code)
    return family_id(code), read.sequence, read.signature
