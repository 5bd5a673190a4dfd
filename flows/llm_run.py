"""A run in which a model composes: new candidates, then corrections of those that were not accepted.

Corrected are the candidates of a round once all of it is judged; each takes the place of the earlier one at
its index. Which ones, and what the model is told, follows from stored verdicts and replies alone, so a run
that was killed goes on as an undisturbed one.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from composer.candidate import Candidate
from data.files import read_operators, read_verdicts
from filters.verdict import Verdict
from flows import llm_settings
from flows.errors import Unfinished
from flows.llm_objections import objection_to
from flows.measured import measured
from flows.resizing import rejected_before, scaled_by_text
from flows.run_folder import RunFolder
from flows.settings import Settings

if TYPE_CHECKING:  # the modules that speak to an endpoint need openai
    from flows.llm_asking import Asking, Job
    from flows.pipeline import Run


def composes(settings: Settings) -> bool:
    """Return whether a model composes."""
    return settings.composer.composer == "llm"


def identity(settings: Settings) -> dict[str, Any]:
    """Return what makes the run another one than with other settings of the model. Raises UsageError."""
    return llm_settings.identity(settings.llm) if composes(settings) else {}


class Llm:
    """The model of one run."""

    def __init__(self, run: "Run", stack: ExitStack) -> None:
        self._run = run
        self._stack = stack
        self._asking: Asking | None = None

    @property
    def cost_limit(self) -> str | None:
        """What was spent, where the limit of costs stopped the composing."""
        return self._asking.cost_limit if self._asking else None

    def composed(self, places: Sequence[int]) -> list[Candidate]:
        """Return new candidates. Raises what `Asking.finish` does."""
        return self._ask(self._ready().first(places)) if places else []

    def corrected(self) -> list[Candidate]:
        """Correct what can be corrected and return what is to be measured anew.

        Sizes are changed by rule where only they are wrong; only then is a turn of the model spent.
        """
        ledger = self._run.ledger
        measurements = measured(ledger, self._run.site.environments)
        resized, jobs = [], []
        for candidate, verdict in rejected_before(
            ledger.candidates(), ledger.verdicts(), self._run.settings.run.count
        ):
            other = scaled_by_text(candidate, verdict, measurements.get(candidate.id))
            if other is not None:
                resized.append(other)
            elif job := self._next_turn(candidate, verdict):
                jobs.append(job)
        changed = resized + self._ask(jobs)
        ledger.replace_candidates(changed)
        return changed

    def _next_turn(self, candidate: Candidate, verdict: Verdict) -> "Job | None":
        """Return the next turn of the conversation, None where there is none to be had."""
        turn, objection = candidate.repair_turns or 0, objection_to(verdict)
        if objection is None or turn >= self._run.settings.llm.repair_turns:
            return None
        return self._ready().correction(candidate, turn + 1, objection)

    def _ask(self, jobs: "Sequence[Job]") -> list[Candidate]:
        if not jobs or self.cost_limit:
            return []
        return self._ready().finish(jobs, self._run.progress)

    def _ready(self) -> "Asking":
        """Return the model, made ready by the first call: a finished run needs none."""
        if self._asking is None:
            from flows.llm_asking import asking

            operators = read_operators(self._run.folder.operators)
            self._asking = self._stack.enter_context(
                asking(self._run.settings, operators, self._run.profile, self._run.ledger)
            )
        return self._asking


def require_rows(folder: RunFolder, wanted: int, cost_limit: str) -> None:
    """Raise where the limit of costs left a run with fewer rows than wanted."""
    accepted = sum(row.verdict.outcome == "accepted" for row in read_verdicts(folder.verdicts))
    if accepted < wanted:
        raise Unfinished(
            f"{folder.path}: stopped at the limit of costs with {accepted} of {wanted:,} rows "
            f"({cost_limit}); raise --max-cost and run the same command again to go on"
        )


@contextmanager
def opened(run: "Run") -> Iterator[Llm]:
    """Yield the model of a run; what it started ends with the block."""
    with ExitStack() as stack:
        yield Llm(run, stack)
