"""A run over a task set that exists: its tasks take the place of composed ones.

All are measured on the device at hand. Those whose time or memory misses the limits there get other sizes, by
the rule that also serves a model's texts; whatever else is wrong with a task is a verdict, as in an audit.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from composer.candidate import Candidate
from data.tasksets import read_taskset
from flows.errors import UsageError
from flows.measured import measured
from flows.resizing import rejected_before, scaled_by_text
from flows.rounds import FIRST_ROUND_MAX
from flows.settings import Settings

if TYPE_CHECKING:
    from flows.pipeline import Run


def read(settings: Settings) -> list[Candidate] | None:
    """Return the tasks of the set that the settings name, None where a composer makes them.

    Raises InputError, and UsageError where a model is to compose as well.
    """
    if settings.run.dataset is None:
        return None
    if settings.composer.composer == "llm":
        raise UsageError("--from: measures tasks that exist; leave out --composer llm")
    return read_taskset(settings.run.dataset)


def counted(settings: Settings) -> Settings:
    """Let a run over a set want all of its tasks, where nobody named a count. Raises as `read` does."""
    given = read(settings)
    if given is None or "count" in settings.run.model_fields_set:
        return settings
    return settings.model_copy(update={"run": settings.run.model_copy(update={"count": len(given)})})


def identity(given: Sequence[Candidate] | None) -> dict[str, Any]:
    """Return what makes the run another one than over other tasks."""
    if given is None:
        return {}
    return {"tasks": hashlib.sha256("".join(each.id for each in given).encode()).hexdigest()}


def next_tasks(given: Sequence[Candidate], *, wanted: int, accepted: int, judged: int) -> list[Candidate]:
    """Return what is measured next: all that is left, or part after part until enough are accepted."""
    if accepted >= wanted:
        return []
    last = judged + max(FIRST_ROUND_MAX, judged) if wanted < len(given) else len(given)
    return list(given[judged:last])


def resized(run: "Run") -> list[Candidate]:
    """Change the sizes of those that missed the limits, and return what is to be measured anew."""
    measurements = measured(run.ledger, run.site.environments)
    pairs = rejected_before(run.ledger.each_candidate(), run.ledger.each_verdict(), run.settings.run.count)
    changed = [scaled_by_text(each, verdict, measurements.get(each.id)) for each, verdict in pairs]
    found = [each for each in changed if each is not None]
    run.ledger.replace_candidates(found)
    return found
