"""The stages of a run as plain functions: operators, candidates, measurements, verdicts, dataset.

None of them knows Prefect; `flows.flows` calls them in order. All progress is in the ledger, so each can be
repeated after a kill and does only what is missing.
"""

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from composer.candidate import Candidate
from composer.layers import MixedComposer, NoLayersError
from composer.profiles import PROFILES, DeviceProfile
from composer.rule_composer import RuleComposer, TooFewRulesError
from data.dataset import write_dataset
from data.files import read_operators, read_timings, write_candidates, write_operators, write_verdicts
from data.funnel import funnel
from data.ledger import Ledger
from data.rows import dataset_row, rejected_row
from filters.engine import Engine
from filters.environment import Environment
from filters.judge import judge, judge_set
from filters.measurement import Measurement
from filters.policy import Policy
from filters.verdict import Verdict
from flows.errors import UsageError
from flows.measuring import Measuring, interruptible
from flows.progress import Progress
from flows.rounds import round_size
from flows.run_folder import RunFolder
from flows.settings import Settings, published_text
from ops_crawler import crawl as crawler
from ops_crawler.operator import Operator

_TRIES = 2
"""How often one start of the command measures a candidate whose worker is lost."""
_SHARDS = 32
"""Shards of a round at most: Prefect keeps a record of each, and thousands slow it down."""


class Run:
    """What the stages of one run share. With slots, because Prefect would record any other object as JSON."""

    __slots__ = (
        "engine", "folder", "ledger", "measuring", "operators", "pending", "profile", "progress",
        "settings", "tries",
    )  # fmt: skip

    def __init__(
        self,
        settings: Settings,
        folder: RunFolder,
        ledger: Ledger,
        engine: Engine,
        operators: Sequence[Operator],
    ) -> None:
        self.settings = settings
        self.folder = folder
        self.ledger = ledger
        self.engine = engine
        self.operators = operators
        """What the sources hold now; the run composes from what it found at its first start."""
        self.profile = profile_for(settings, engine.device)
        self.progress = Progress()
        self.measuring = Measuring(engine, settings.policy, self._keep, self.progress)
        self.pending: list[Candidate] = []
        """What `compose` found to be measured next."""
        self.tries: Counter[int] = Counter()
        """Times that a candidate was measured since this start, by index."""

    def _keep(self, candidate: Candidate, measurement: Measurement) -> None:
        self.ledger.put(candidate.id, self.engine.environment.key, measurement)


@contextmanager
def opened(settings: Settings) -> Iterator[Run]:
    """Claim the run directory, open the ledger and start the workers; all end with the block.

    Raises UsageError, InputError (such as a run with another seed lies there), StorageError,
    InfrastructureError and SandboxFault.
    """
    began = time.monotonic()
    operators = operators_of(settings)
    timings = read_timings(settings.run.timings) if settings.run.timings else None
    folder = RunFolder(settings.run.run_dir)
    with ExitStack() as stack:
        stack.enter_context(folder.claimed())
        ledger = stack.enter_context(Ledger.open(folder.ledger))
        engine = Engine(settings.filters, settings.policy, timings, unsafe=settings.run.unsafe)
        run = Run(settings, folder, ledger, engine, operators)
        ledger.claim_identity(
            {
                "seed": settings.run.seed,
                "sources": settings.sources,
                "composer": settings.composer.composer,
                "layers_share": settings.composer.layers_share,
                "profile": run.profile.name,
            }
        )
        folder.write_settings(settings)
        stack.enter_context(engine)
        folder.write_environment(engine.environment)
        if settings.run.deadline_minutes:
            left = settings.run.deadline_minutes * 60 - (time.monotonic() - began)
            timer = threading.Timer(max(left, 0), run.measuring.stop)
            timer.daemon = True
            timer.start()
            stack.callback(timer.cancel)
        yield run


def crawl(run: Run) -> None:
    """Fix the operators that the run composes from; an earlier start may have done it."""
    if not run.folder.operators.exists():
        write_operators(run.folder.operators, run.operators)


def operators_of(settings: Settings) -> list[Operator]:
    """Return the operators of all sources of the settings; what is wrong with one of them is told on stderr.

    This imports the user's own sources, so that layers can be built from them. Raises UsageError where no
    source gave any operator.
    """
    try:
        survey = crawler.survey(settings.sources)
    except crawler.NoOperatorsError as error:
        raise UsageError(f"sources: {error}") from None
    for problem in survey.problems:
        print(f"opweaver: {problem}", file=sys.stderr)
    return list(survey.operators)


def compose(run: Run) -> bool:
    """Find what to measure next: candidates left open, else a new round; False when the run is over.

    A new round is in the ledger before this returns.
    """
    run.pending = [] if run.measuring.stopped else _left_open(run) or _new_round(run)
    run.tries.update(candidate.index for candidate in run.pending)
    return bool(run.pending)


def _left_open(run: Run) -> list[Candidate]:
    unknown = {verdict.index for verdict in run.ledger.verdicts() if verdict.outcome == "infrastructure"}
    return [
        candidate
        for candidate in run.ledger.candidates()
        if candidate.index in unknown and run.tries[candidate.index] < _TRIES
    ]


def _new_round(run: Run) -> list[Candidate]:
    verdicts = run.ledger.verdicts()
    first, size = len(verdicts), round_size(run.settings.run.count, count_accepted(verdicts), len(verdicts))
    operators = read_operators(run.folder.operators)
    candidates = compose_at(
        range(first, first + size),
        operators,
        run.profile,
        run.settings.run.seed,
        run.progress,
        run.settings.composer.layers_share,
    )
    run.ledger.add_candidates(candidates)
    return candidates


def compose_at(
    places: Sequence[int],
    operators: Sequence[Operator],
    profile: DeviceProfile,
    seed: int,
    progress: Progress,
    layers_share: float = 0.0,
) -> list[Candidate]:
    """Return the candidates with these indices."""
    if not places:
        return []
    try:
        rules = RuleComposer(operators, profile, seed)
        composer = MixedComposer(rules, operators, layers_share) if layers_share else rules
    except (TooFewRulesError, NoLayersError) as error:
        raise UsageError(f"sources: {error}") from None
    candidates = []
    with progress.stage("composing", len(places)):
        for index in places:
            candidates.append(composer.compose(index))
            progress.advance()
    return candidates


@contextmanager
def measuring(run: Run) -> Iterator[list[range]]:
    """Yield the places in `run.pending` in shards, for `measure_shard` on any thread."""
    places = range(len(run.pending))
    size = max(2 * run.engine.workers, math.ceil(len(places) / _SHARDS))
    with interruptible(run.measuring.stop), run.progress.stage("measuring", len(places)):
        yield [places[start : start + size] for start in places[::size]]


def measure_shard(run: Run, shard: range) -> None:
    """Measure the candidates at these places; each is in the ledger as soon as it is finished."""
    run.measuring.measure(run.pending[shard.start : shard.stop])


def judge_run(run: Run) -> None:
    """Judge every candidate of the run by what is known of it in this environment."""
    judge_ledger(run.ledger, run.engine.environment, run.settings)


def judge_ledger(ledger: Ledger, environment: Environment, settings: Settings) -> None:
    """Replace the verdicts of a ledger; touches no device."""
    measurements = ledger.measurements(environment.key)
    ledger.replace_verdicts(
        verdicts_of(ledger.candidates(), measurements, settings.policy, wanted=settings.run.count)
    )


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
        candidate.index: judge(
            candidate, measurements.get(candidate.id), policy, skip_source_filters=skip_source_filters
        )
        for candidate in candidates
    }
    return judge_set(candidates, alone, measurements, wanted)


def judge_again(folder: RunFolder, settings: Settings) -> None:
    """Judge what was measured by the given settings and write the files of the run; executes nothing."""
    environment = folder.read_environment()
    with folder.claimed(), Ledger.open(folder.ledger, create=False) as ledger:
        folder.write_settings(settings)
        judge_ledger(ledger, environment, settings)
        write_results(folder, ledger, environment, settings)


def write_run(run: Run) -> None:
    """Write the files of the run from its ledger."""
    write_results(run.folder, run.ledger, run.engine.environment, run.settings)


def write_results(folder: RunFolder, ledger: Ledger, environment: Environment, settings: Settings) -> None:
    """Write candidates, dataset and, last, verdicts; see `RunFolder.is_finished`."""
    candidates, verdicts = ledger.candidates(), ledger.verdicts()
    measurements = ledger.measurements(environment.key)
    pairs = [(candidates[verdict.index], verdict) for verdict in verdicts]
    write_candidates(folder.candidates, candidates)
    write_dataset(
        folder.dataset,
        rows=[
            dataset_row(candidate, measurements[candidate.id], environment)
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
        settings=published_text(settings),
    )
    write_verdicts(folder.verdicts, candidates, verdicts, measurements)


def count_accepted(verdicts: Sequence[Verdict]) -> int:
    """Count the rows that passed all filters, surplus included."""
    return sum(verdict.outcome in ("accepted", "surplus") for verdict in verdicts)


def profile_for(settings: Settings, device: str) -> DeviceProfile:
    """Return the figures of the device for which sizes are solved."""
    named = settings.composer.profile
    if named == "auto":
        named = "h200" if device == "cuda" else "cpu"
    return PROFILES[named]
