"""Which candidates are composed again with other sizes, because their time was predicted wrongly.

A candidate of our rules, or a lifted layer, that was measured `too_fast` or `too_slow` is composed again at
the same index, one or two steps of the ladder larger or smaller, at most twice. It takes the earlier one's
place: there is one candidate and one verdict per index at any time, so that planned = accepted + surplus +
rejected + infrastructure holds as ever. What was measured of the earlier one stays in the ledger under its
own id, and `Candidate.earlier_ids` leads there; `verdicts.parquet` repeats its times (column
`earlier_sizings`), so that a run with recorded times takes the same steps.

The candidate is a pure function of seed, index, operators, profile and the number of steps, and the steps
follow from stored measurements alone: killed before the new candidate is in the ledger, the next start
decides the same; killed after, it finds a candidate without a measurement. Only candidates before the wanted
number of accepted ones are composed again, for no other can be among the rows; so the rows are the first
accepted by index, however many rounds it took.

Where the text is not ours, a model's or that of a set that exists, a constant in it is changed instead, by
`composer.llm.resizing`; the same holds for those.
"""

import dataclasses
from collections.abc import Iterable

from composer.candidate import Candidate
from composer.llm.resizing import factor_for, scaled
from composer.sizes import FASTEST, SLOWEST
from filters.measurement import Measurement
from filters.reasons import Reason
from filters.verdict import Verdict

RESIZINGS_MAX = 2
"""New sizings of one index, by rule or by text."""
_SMALLER = 0.4
"""Factor for the batch of a task that needs too much memory."""


def misses(
    candidates: Iterable[Candidate], verdicts: Iterable[Verdict], wanted: int
) -> list[tuple[Candidate, Reason]]:
    """Return the candidates to compose again, and why; both come in the order of the index."""
    found: list[tuple[Candidate, Reason]] = []
    for candidate, verdict in zip(candidates, verdicts, strict=True):
        wanted -= verdict.outcome in ("accepted", "surplus")
        if wanted == 0:
            break
        missed = verdict.reason in (Reason.TOO_FAST, Reason.TOO_SLOW)
        if missed and candidate.origin != "foreign" and len(candidate.earlier_ids) < RESIZINGS_MAX:
            found.append((candidate, verdict.reason))
    return found


def rejected_before(
    candidates: Iterable[Candidate], verdicts: Iterable[Verdict], wanted: int
) -> list[tuple[Candidate, Verdict]]:
    """Return the rejected ones before the wanted number of accepted: no other can be among the rows."""
    found = []
    for candidate, verdict in zip(candidates, verdicts, strict=True):
        wanted -= verdict.outcome in ("accepted", "surplus")
        if wanted <= 0:
            break
        if verdict.outcome == "rejected" and not candidate.reply_fault:
            found.append((candidate, verdict))
    return found


def scaled_by_text(
    candidate: Candidate, verdict: Verdict, measurement: Measurement | None
) -> Candidate | None:
    """Return the candidate with other sizes; None where sizes are not what is wrong, or cannot change."""
    if candidate.size_edits >= RESIZINGS_MAX:
        return None
    if verdict.reason in (Reason.OUT_OF_MEMORY, Reason.TOO_MUCH_MEMORY):
        factor = _SMALLER
    elif verdict.reason in (Reason.TOO_FAST, Reason.TOO_SLOW) and measurement and measurement.eager_ms:
        factor = factor_for(measurement.eager_ms, FASTEST * 1e3, SLOWEST * 1e3)
    else:
        return None
    code = scaled(candidate.code, factor)
    if code is None:
        return None
    earlier_ids = (*candidate.earlier_ids, candidate.id)
    return dataclasses.replace(
        candidate, code=code, size_edits=candidate.size_edits + 1, earlier_ids=earlier_ids
    )
