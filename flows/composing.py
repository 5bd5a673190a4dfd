"""From operators to candidates, by the settings: for runs, and for the commands that do a part of one."""

import io
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stderr
from typing import Any

import torch

from composer.candidate import Candidate
from composer.layers import MixedComposer, NoLayersError
from composer.llm.assignment import TooFewOperatorsError
from composer.llm.candidates import LlmComposer
from composer.profiles import DeviceProfile
from composer.rule_composer import RuleComposer, TooFewRulesError
from filters.sandbox.syscalls import die_with_parent
from flows.errors import UsageError
from flows.llm_settings import effective, model_of
from flows.progress import Progress
from flows.settings import Settings
from ops_crawler import crawl as crawler
from ops_crawler.operator import Operator

_PLACES_PER_PROCESS = 64
"""Candidates that are worth the start of a process, some 8 s of composing."""


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


def composer_of(
    settings: Settings, operators: Sequence[Operator], profile: DeviceProfile
) -> RuleComposer | MixedComposer:
    """Return the composer that the settings ask for; own operators that it lacks are told on stderr.

    Raises UsageError.
    """
    share = settings.composer.layers_share
    try:
        rules = RuleComposer(
            operators,
            profile,
            settings.run.seed,
            easy_share=settings.composer.easy_share,
            dtypes=settings.composer.dtypes,
        )
        composer: RuleComposer | MixedComposer = rules
        if share:
            composer = MixedComposer(rules, operators, share)
    except (TooFewRulesError, NoLayersError) as error:
        raise UsageError(f"sources: {error}") from None
    own = {operator.name for operator in operators if operator.usage}
    lacking = sorted(own - {rule.operator for rule in rules.rules})
    if lacking:
        print(
            f"opweaver: left out, because no source in the settings has them: {', '.join(lacking)}; "
            "name it in `sources`",
            file=sys.stderr,
        )
    return composer


def llm_composer_of(settings: Settings, operators: Sequence[Operator], profile: DeviceProfile) -> LlmComposer:
    """Return what writes the requests to the model of the settings. Raises UsageError."""
    llm = effective(settings.llm)
    try:
        return LlmComposer(operators, profile, llm, model_of(llm), settings.run.seed)
    except TooFewOperatorsError as error:
        raise UsageError(f"sources: {error}") from None


def compose_at(
    places: Sequence[int],
    settings: Settings,
    operators: Sequence[Operator],
    profile: DeviceProfile,
    progress: Progress,
) -> list[Candidate]:
    """Return the candidates of our own composer with these indices; many are composed by several processes.

    Raises UsageError.
    """
    composer = composer_of(settings, operators, profile)
    processes = min(len(os.sched_getaffinity(0)), len(places) // _PLACES_PER_PROCESS)
    candidates = []
    with ExitStack() as stack:
        compose: Iterable[Candidate] = map(composer.compose, places)
        if processes > 1:
            pool = stack.enter_context(_pool(processes, settings, operators, profile))
            compose = pool.map(_compose, places, chunksize=4)
        stack.enter_context(progress.stage("composing", len(places)))
        for candidate in compose:
            candidates.append(candidate)
            progress.advance()
    return candidates


@contextmanager
def _pool(processes: int, *arguments: Any) -> Iterator[ProcessPoolExecutor]:
    """Yield processes that inherit no threads; where the block ends early, what waits in line is dropped."""
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), _start_process, initargs=arguments
    )
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


_composer: RuleComposer | MixedComposer
"""Of a process of the pool."""


def _start_process(settings: Settings, operators: Sequence[Operator], profile: DeviceProfile) -> None:
    """Make a process of the pool ready. What is wrong with a source was told by the first."""
    global _composer
    die_with_parent(signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends the pool
    torch.set_num_threads(1)
    with redirect_stderr(io.StringIO()):
        operators_of(settings)  # imports the user's own sources
        _composer = composer_of(settings, operators, profile)


def _compose(index: int) -> Candidate:
    return _composer.compose(index)
