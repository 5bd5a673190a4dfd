"""The stages of a run as plain functions: operators, candidates, measurements, verdicts, dataset.

None of them knows Prefect; `flows.flows` calls them in order. All progress is in the ledger, so each can be
repeated after a kill and does only what is missing.
"""

import dataclasses
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from composer.candidate import Candidate
from composer.profiles import profile_for
from composer.sizes import steps_towards
from data.dataset import write_dataset
from data.files import read_operators, read_timings, write_candidates, write_operators, write_verdicts
from data.funnel import funnel
from data.ledger import Ledger
from data.rows import dataset_row, rejected_row
from filters.environment import Environment
from filters.judge import judge, judge_set
from filters.measurement import Measurement
from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Verdict
from flows import given_run, llm_run
from flows.composing import compose_at, composer_of, operators_of
from flows.judging import judge_ledger, measured_first
from flows.llm_objections import reply_verdict
from flows.measured import environment_of, measured
from flows.measuring import interruptible, stopped_after
from flows.one_machine import OneMachine
from flows.resizing import misses
from flows.rounds import round_size
from flows.run_folder import RunFolder
from flows.settings import Settings, published_text
from flows.site import Site, site_of
from ops_crawler.operator import Operator

_TRIES = 2
"""How often one start of the command measures a candidate whose worker is lost."""


class Run:
    """What the stages of one run share. With slots, because Prefect would record any other object as JSON."""

    __slots__ = (
        "folder", "given", "ledger", "llm", "operators", "pending", "profile", "progress", "settings", "site",
        "tries",
    )  # fmt: skip

    def __init__(
        self,
        settings: Settings,
        folder: RunFolder,
        ledger: Ledger,
        site: Site,
        operators: Sequence[Operator],
        given: Sequence[Candidate] | None,
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.ledger = ledger
        self.site = site
        self.operators = operators
        """What the sources hold now; the run composes from what it found at its first start."""
        self.given = given
        """Tasks that exist already, in place of composed ones."""
        self.profile = profile_for(settings.composer.profile, site.device)
        self.progress = site.progress
        self.llm: llm_run.Llm | None = None
        """The model that composes in place of our rules."""
        self.pending: list[Candidate] = []
        """What `compose` found to be measured next."""
        self.tries: Counter[str] = Counter()
        """Times that a candidate was measured since this start, by id."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as nothing: a task on another machine is told all that it needs to know otherwise."""
        return type(None), ()


@contextmanager
def opened(settings: Settings) -> Iterator[Run]:
    """Claim the run directory, open the ledger and start the workers; all end with the block.

    Raises UsageError, InputError (such as a run with another seed lies there), StorageError,
    InfrastructureError and SandboxFault.
    """
    began = time.monotonic()
    operators, given = operators_of(settings), given_run.read(settings)
    timings = read_timings(settings.run.timings) if settings.run.timings else None
    folder = RunFolder(settings.run.run_dir)
    with ExitStack() as stack:
        stack.enter_context(folder.claimed())
        ledger = stack.enter_context(Ledger.open(folder.ledger))
        site = site_of(settings, timings, ledger, folder)
        run = Run(settings, folder, ledger, site, operators, given)
        ledger.claim_identity(
            {
                "seed": settings.run.seed,
                "sources": settings.sources,
                **settings.composer.model_dump(mode="json"),
                "profile": run.profile.digest,
                **llm_run.identity(settings),
                **given_run.identity(given),
            }
        )
        if llm_run.composes(settings):
            run.llm = stack.enter_context(llm_run.opened(run))
        folder.write_settings(settings)
        stack.enter_context(site)
        if site.environments:
            folder.write_environments(site.environments)
        with stopped_after(settings.run.deadline_minutes, began, site.stop):
            yield run


def crawl(run: Run) -> None:
    """Fix the operators that the run composes from; an earlier start may have done it."""
    if not run.folder.operators.exists():
        write_operators(run.folder.operators, run.operators)


def compose(run: Run) -> bool:
    """Find what to measure next; False when the run is over.

    Candidates left open come first, then those whose sizes missed the window of times, then a new round. What
    is composed is in the ledger before this returns.
    """
    run.pending = [] if run.site.stopped else _left_open(run) or _put_right(run) or _new_round(run)
    run.tries.update(candidate.id for candidate in run.pending)
    return bool(run.pending)


def _left_open(run: Run) -> list[Candidate]:
    unknown = {verdict.index for verdict in run.ledger.each_verdict() if verdict.outcome == "infrastructure"}
    return [
        candidate
        for candidate in (run.ledger.each_candidate() if unknown else ())
        if candidate.index in unknown
        and run.tries[candidate.id] < _TRIES
        and candidate.id not in run.site.set_aside
    ]


def _put_right(run: Run) -> list[Candidate]:
    """Change what can be put right: sizes, and whatever a model can correct."""
    if run.given is not None:
        return given_run.resized(run)
    return _resized(run) or (run.llm.corrected() if run.llm else [])


def _resized(run: Run) -> list[Candidate]:
    """Compose those again that `flows.resizing` names; none where their sizes can move no further."""
    missed = misses(run.ledger.each_candidate(), run.ledger.each_verdict(), run.settings.run.count)
    if not missed:
        return []
    keys = [environment.key for environment in run.site.environments]
    composer = composer_of(run.settings, read_operators(run.folder.operators), run.profile)
    candidates = []
    with run.progress.stage("composing", len(missed)):
        for earlier, reason in missed:
            measurement, _ = measured_first(run.ledger, earlier.id, keys)
            eager_ms = measurement.eager_ms if measurement else None
            assert eager_ms is not None  # or the reason could not be its time
            too_fast = reason is Reason.TOO_FAST
            steps = earlier.ladder_steps + steps_towards(eager_ms / 1e3, too_fast=too_fast)
            earlier_ids = (*earlier.earlier_ids, earlier.id)
            resized = dataclasses.replace(composer.compose(earlier.index, steps), earlier_ids=earlier_ids)
            if resized.id not in earlier_ids:
                candidates.append(resized)
            run.progress.advance()
    run.ledger.replace_candidates(candidates)
    return candidates


def _new_round(run: Run) -> list[Candidate]:
    outcomes = Counter(verdict.outcome for verdict in run.ledger.each_verdict())
    judged, accepted = outcomes.total(), outcomes["accepted"] + outcomes["surplus"]
    wanted = run.settings.run.count
    if run.given is not None:
        candidates = given_run.next_tasks(run.given, wanted=wanted, accepted=accepted, judged=judged)
    else:
        candidates = _composed(run, range(judged, judged + round_size(wanted, accepted, judged)))
    run.ledger.add_candidates(candidates)
    return candidates


def _composed(run: Run, places: range) -> list[Candidate]:
    if not places:
        return []
    if run.llm:
        return run.llm.composed(places)
    return compose_at(places, run.settings, read_operators(run.folder.operators), run.profile, run.progress)


@contextmanager
def measuring(run: Run) -> Iterator[list[range]]:
    """Yield the places in `run.pending` in shards, for `measure_shard` on any thread."""
    places = range(len(run.pending))
    size = run.site.shard_size(len(places))
    with interruptible(run.site.stop), run.progress.stage("measuring", len(places)):
        yield [places[start : start + size] for start in places[::size]]


def measure_shard(run: Run, shard: range) -> None:
    """Measure the candidates at these places here; each is in the ledger as soon as it is finished."""
    assert isinstance(run.site, OneMachine)
    run.site.measure(run.pending[shard.start : shard.stop])


def judge_run(run: Run) -> None:
    """Judge every candidate of the run by what is known of it in this environment."""
    judge_ledger(run.ledger, run.site.environments, run.settings)


def verdicts_of(
    candidates: Sequence[Candidate],
    measurements: Mapping[str, Measurement],
    policy: Policy,
    *,
    wanted: int | None = None,
    skip_source_filters: bool = False,
) -> list[Verdict]:
    """Judge a set of candidates: each by itself, then repeats and surplus."""
    alone = {
        candidate.index: reply_verdict(candidate)
        or judge(candidate, measurements.get(candidate.id), policy, skip_source_filters=skip_source_filters)
        for candidate in candidates
    }
    return judge_set(candidates, alone, measurements, wanted)


def judge_again(folder: RunFolder, settings: Settings, name: str = "ORG/NAME") -> None:
    """Judge what was measured by the given settings and write the files of a claimed run; executes nothing.

    The card calls the dataset `name`.
    """
    environments = folder.read_environments()
    with Ledger.open(folder.ledger, create=False) as ledger:
        folder.write_settings(settings)
        judge_ledger(ledger, environments, settings, again=True)
        write_results(folder, ledger, environments, settings, name)


def write_run(run: Run) -> None:
    """Write the files of the run from its ledger."""
    write_results(run.folder, run.ledger, run.site.environments, run.settings)


def write_results(
    folder: RunFolder,
    ledger: Ledger,
    environments: Sequence[Environment],
    settings: Settings,
    name: str = "ORG/NAME",
) -> None:
    """Write candidates, dataset and, last, verdicts; see `RunFolder.is_finished`. The card shows `name`."""
    candidates, verdicts = ledger.candidates(), ledger.verdicts()
    measurements, where = measured(ledger, environments), environment_of(ledger, environments)
    pairs = [(candidates[verdict.index], verdict) for verdict in verdicts]
    write_candidates(folder.candidates, candidates)
    write_dataset(
        folder.dataset,
        rows=[
            dataset_row(candidate, measurements[candidate.id], where[candidate.id])
            for candidate, verdict in pairs
            if verdict.outcome == "accepted"
        ],
        rejected=[
            rejected_row(candidate, verdict, measurements.get(candidate.id))
            for candidate, verdict in pairs
            if verdict.outcome == "rejected"
        ],
        operators=read_operators(folder.operators),
        funnel=funnel(verdicts),
        policy=settings.policy,
        settings=published_text(settings),
        name=name,
    )
    write_verdicts(folder.verdicts, candidates, verdicts, measurements)
