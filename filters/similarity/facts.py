"""How near tasks are to the benchmark: facts, no opinions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from composer.source_names import parse
from filters.similarity.reference import Reference
from filters.similarity.sequences import operator_sequence, operator_similarities
from filters.similarity.static_operators import static_signature
from filters.similarity.syntax_trees import Matches, Program, ast_similarity, model_class

_BATCH = 2_000
"""Sequences compared at once; bounds the matrix of scores to some MB."""
_ROUNDING = 5e-5
"""Scores of instrument 1 are rounded to four decimals, its bounds are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarityFacts:
    """Scores of one candidate against all tasks of a reference, 0 to 1, and the nearest tasks' names."""

    kb_ast_similarity: float
    """Instrument 1, exact."""
    kb_nearest: str
    kb_signature_match: str | None
    """Instrument 2: a task with an equal ordered signature."""
    kb_operator_similarity: float
    """Instrument 3 without its condition."""
    kb_operator_nearest: str
    kb_same_operators_similarity: float | None
    """Instrument 3 among the tasks with the same multiset of operators, None where there are none."""
    kb_same_operators_nearest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What of a candidate instruments 2 and 3 compare."""

    sequence: tuple[int, ...]
    signature: tuple[str, ...]
    executed: bool
    """Whether the signature is what ran; otherwise it was read from the source."""


def fingerprint(code: str, signature: Sequence[str] | None = None) -> Fingerprint:
    """Return a candidate's fingerprint, its signature read from the source unless the executed one is given.

    Raises `UnreadableCodeError`.
    """
    read = static_signature(code) if signature is None else tuple(signature)
    return Fingerprint(sequence=operator_sequence(code), signature=read, executed=signature is not None)


def similarity(code: str, signature: Sequence[str] | None, reference: Reference) -> SimilarityFacts:
    """Return how near one candidate is to a reference. Raises `UnreadableCodeError`."""
    (facts,) = similarities([code], [fingerprint(code, signature)], reference)
    return facts


def similarities(
    codes: Sequence[str], fingerprints: Sequence[Fingerprint], reference: Reference
) -> list[SimilarityFacts]:
    """Return how near candidates are to a reference, given their source texts and fingerprints.

    Raises `UnreadableCodeError` for a text that `fingerprint` would refuse.
    """
    nearest_models = [nearest_model(code, reference) for code in codes]
    return [
        SimilarityFacts(kb_ast_similarity=score, kb_nearest=name, **others)
        for (score, name), others in zip(nearest_models, operator_facts(fingerprints, reference), strict=True)
    ]


def nearest_model(code: str, reference: Reference) -> tuple[float, str]:
    """Return the highest score of instrument 1 and the task that has it, the first one of equals.

    Tasks are looked at in the order of their upper bounds until none can be nearer.
    Raises `UnreadableCodeError`.
    """
    forest = reference.forest
    size = len(forest.kinds)
    try:
        program = forest.plant(model_class(parse(code)))
        bounds = _upper_bounds(program, reference)
        matches = Matches(forest)
        best, nearest = -1.0, 0
        for place in np.argsort(-bounds, kind="stable"):
            if bounds[place] + _ROUNDING < best:
                break
            score = ast_similarity(program, reference.programs[place], matches)
            if (score, -place) > (best, -nearest):
                best, nearest = score, int(place)
    finally:
        forest.prune(size)
    return best, reference.tasks[nearest].name


def _upper_bounds(program: Program, reference: Reference) -> NDArray[np.float64]:
    """Return for each task what instrument 1 can give at most."""
    columns = reference.profile_columns
    known = {columns[key]: weight for key, weight in program.profile.items() if key in columns}
    common = np.minimum(reference.profiles[:, list(known)], np.array(list(known.values())))
    return 2 * common.sum(axis=1) / (reference.weights + program.weight)


def operator_facts(fingerprints: Sequence[Fingerprint], reference: Reference) -> Iterator[dict[str, Any]]:
    """Yield what instruments 2 and 3 say of each candidate, as fields of `SimilarityFacts`."""
    for start in range(0, len(fingerprints), _BATCH):
        batch = fingerprints[start : start + _BATCH]
        same_operators = [
            reference.same_operators(candidate.signature, executed=candidate.executed) for candidate in batch
        ]
        scores = _operator_scores(batch, same_operators, reference)
        nearest_tasks = scores.argmax(axis=1)
        for candidate, same, row, nearest in zip(batch, same_operators, scores, nearest_tasks, strict=True):
            nearest_same = max(same, key=lambda place: row[place], default=None)
            yield {
                "kb_signature_match": reference.same_signature(
                    candidate.signature, executed=candidate.executed
                ),
                "kb_operator_similarity": _rounded(row[nearest]),
                "kb_operator_nearest": reference.tasks[nearest].name,
                "kb_same_operators_similarity": None if nearest_same is None else _rounded(row[nearest_same]),
                "kb_same_operators_nearest": None
                if nearest_same is None
                else reference.tasks[nearest_same].name,
            }


def _operator_scores(
    batch: Sequence[Fingerprint], same_operators: Sequence[Sequence[int]], reference: Reference
) -> NDArray[np.float32]:
    """Return the scores of instrument 3, one row for each candidate; exact where anybody looks.

    Long tasks cost most and are hardly ever the nearest: 2 * shorter / (shorter + longer) bounds the score.
    A candidate that no long task can be nearest to has 0 there.
    """
    sequences = [candidate.sequence for candidate in batch]
    scores = np.zeros((len(batch), len(reference.tasks)), dtype=np.float32)
    short, long = reference.short_and_long
    scores[:, short] = operator_similarities(sequences, [reference.sequences[place] for place in short])
    lengths = np.array([len(sequence) for sequence in sequences])[:, None]
    long_lengths = np.array([len(reference.sequences[place]) for place in long])
    shorter = np.minimum(lengths, long_lengths)
    possible = 2 * shorter / (lengths + long_lengths) >= scores.max(axis=1, initial=0)[:, None]
    wanted = [not set(same).isdisjoint(long) for same in same_operators]
    rows = np.flatnonzero(possible.any(axis=1) | np.array(wanted))
    if len(rows) and long:
        scores[np.ix_(rows, np.array(long))] = operator_similarities(
            [sequences[row] for row in rows], [reference.sequences[place] for place in long]
        )
    return scores


def _rounded(score: np.float32) -> float:
    return round(float(score), 4)
