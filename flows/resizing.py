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
"""

from collections.abc import Iterable

from composer.candidate import Candidate
from filters.reasons import Reason
from filters.verdict import Verdict

RESIZINGS_MAX = 2
"""New sizings of one index."""


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
