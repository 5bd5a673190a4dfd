"""Ask a model for many candidates at once, and let it correct what is wrong with them.

Nothing is asked that was replied to before: the cache holds every reply, so an interrupted command goes on
where it stopped.
"""

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from composer.candidate import Candidate
from composer.llm.batch import BatchClient, NotYetError
from composer.llm.candidates import LlmComposer, next_request
from composer.llm.client import ChatClient, chat_client, openai_client
from composer.llm.costs import Meter, estimated, reported
from composer.llm.errors import CostLimitError, EndpointError, NoReplyError, RequestRefusedError
from composer.llm.local import local_server
from composer.llm.protocols import ReplyCache, Validate
from composer.llm.requests import Request
from composer.profiles import DeviceProfile
from flows.composing import llm_composer_of
from flows.errors import InfrastructureError
from flows.llm_objections import source_objection
from flows.llm_settings import price_of
from flows.progress import Progress
from flows.settings import Settings
from ops_crawler.operator import Operator

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One candidate to be asked for, from its first request or from a correction on."""

    index: int
    request: Request
    turn: int = 0
    before: Candidate | None = None
    """What is to be corrected."""


class Asking:
    """A model that is ready to be asked."""

    def __init__(
        self, composer: LlmComposer, cache: ReplyCache, validate: Validate, base_url: str | None = None
    ) -> None:
        self.composer = composer
        self.cost_limit: str | None = None
        """What was spent, once the limit of costs has stopped the asking."""
        self._settings = composer.settings
        self._cache = cache
        self._validate = validate
        self._base_url = base_url
        self._meter = _meter(composer, cache)

    def bought(self) -> str:
        """Say what all replies so far took, those of earlier starts included."""
        return f"{self._meter.replies:,} replies, {self._meter.line()}"

    def first(self, places: Iterable[int]) -> list[Job]:
        """Return the jobs for candidates that nobody asked for yet."""
        return [Job(index=index, request=self.composer.request(index)) for index in places]

    def correction(self, candidate: Candidate, turn: int, objection: str) -> Job | None:
        """Return the job for a turn about a candidate; None where its conversation is not known or over."""
        request = self._cache.request(candidate.request_hash or "")
        reply = self._cache.reply(request) if request else None
        if request is None or reply is None:
            return None
        following = next_request(request, reply, candidate, objection)
        return (
            Job(index=candidate.index, request=following, turn=turn, before=candidate) if following else None
        )

    def finish(self, jobs: Sequence[Job], progress: Progress) -> list[Candidate]:
        """Return the candidates in the order of the jobs; fewer where the limit of costs is reached.

        Then they are those before the first one that is missing, and `cost_limit` says what was spent.
        Raises EndpointError where the endpoint fails, InfrastructureError where single requests did.
        """
        with progress.stage(f"asking {self.composer.model}", len(jobs), note=self._meter.line):
            ask = self._in_batches if self._settings.batch else self._all
            done, failures = _until_interrupted(ask(jobs, progress))
        if failures:
            raise InfrastructureError(
                f"{len(failures)} of {len(jobs)} requests failed, the last one: {failures[-1]}; replies so "
                "far are kept, run the same command again to ask for the others"
            )
        missing = next((place for place, job in enumerate(jobs) if job.index not in done), len(jobs))
        return [done[job.index] for job in jobs[:missing]]

    async def _all(self, jobs: Sequence[Job], progress: Progress) -> tuple[dict[int, Candidate], list[str]]:
        done: dict[int, Candidate] = {}
        failures: list[str] = []
        waiting = iter(jobs)
        try:
            async with (
                chat_client(self._cache, self._settings, self._meter, self._base_url) as client,
                asyncio.TaskGroup() as group,
            ):
                for _ in range(min(self._settings.concurrency, len(jobs))):
                    group.create_task(self._work(waiting, client, done, failures, progress))
        except* EndpointError as errors:
            raise errors.exceptions[0] from None
        return done, failures

    async def _in_batches(
        self, jobs: Sequence[Job], progress: Progress
    ) -> tuple[dict[int, Candidate], list[str]]:
        """Ask for all first replies in one batch, for all first corrections in the next one, and so on."""
        done: dict[int, Candidate] = {}
        try:
            async with openai_client(self._settings, self._base_url) as opened:
                client = BatchClient(opened, self._cache, self._meter)
                while waiting := [job for job in jobs if job.index not in done]:
                    for job in waiting:
                        with suppress(NotYetError):
                            done[job.index] = await self._one(job, client)
                            progress.advance()
                    if client.wanted and (failures := await client.ask()):
                        return done, failures
        except CostLimitError as error:
            self.cost_limit = str(error)
        return done, []

    async def _work(
        self,
        jobs: Iterator[Job],
        client: ChatClient,
        done: dict[int, Candidate],
        failures: list[str],
        progress: Progress,
    ) -> None:
        """Take one job after the other until none is left."""
        for job in jobs:
            if self.cost_limit:
                return
            try:
                done[job.index] = await self._one(job, client)
            except NoReplyError as error:
                failures.append(str(error))
            except CostLimitError as error:
                self.cost_limit = str(error)
            progress.advance()

    async def _one(self, job: Job, client: ChatClient | BatchClient) -> Candidate:
        request, turn, candidate = job.request, job.turn, job.before
        while True:
            try:
                reply = await client.reply(request)
            except RequestRefusedError as error:
                return candidate or self.composer.refused(job.index, request, str(error))
            answered = self.composer.answered(job.index, request, reply, turn)
            candidate = answered.candidate
            objection = answered.objection or self._validate(candidate)
            if not objection or turn >= self._settings.repair_turns:
                return candidate
            correction = next_request(request, reply, candidate, objection)
            if correction is None:
                return candidate
            request, turn = correction, turn + 1


def _until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end; Ctrl-C cancels all that is under way and raises KeyboardInterrupt.

    It cancels again every second: libraries have been seen to swallow a cancellation, or to turn it into a
    failed request.
    """
    interrupted = False

    def cancel_all(loop: asyncio.AbstractEventLoop) -> None:
        nonlocal interrupted
        interrupted = True
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.call_later(1.0, cancel_all, loop)

    async def watched() -> T:
        loop = asyncio.get_running_loop()
        if threading.current_thread() is threading.main_thread():
            loop.add_signal_handler(signal.SIGINT, cancel_all, loop)
        return await work

    try:
        return asyncio.run(watched())
    except BaseException:  # a cancelled task may end with anything; raised again unless it was Ctrl-C
        if interrupted:
            raise KeyboardInterrupt from None
        raise


def _meter(composer: LlmComposer, cache: ReplyCache) -> Meter:
    """Return a meter that knows what was bought before. Raises UsageError where the price is unknown."""
    meter = Meter(price_of(composer.settings), composer.settings.max_cost)
    for reply in cache.replies():
        meter.bought(reported(reply) or estimated(composer.request(0)))
    return meter


@contextmanager
def asking(
    settings: Settings, operators: Sequence[Operator], profile: DeviceProfile, cache: ReplyCache
) -> Iterator[Asking]:
    """Yield the model that the settings name; a local one is stopped with the block.

    Raises UsageError where none is named, EndpointError where the local one does not start.
    """
    composer = llm_composer_of(settings, operators, profile)
    validate = partial(source_objection, policy=settings.policy)
    with ExitStack() as stack:
        is_local = composer.settings.server == "local"
        base_url = stack.enter_context(local_server()) if is_local else None
        yield Asking(composer, cache, validate, base_url)
