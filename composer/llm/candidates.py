"""From a reply to a candidate, and from an objection to the next request."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from composer.candidate import Candidate
from composer.llm.layer_plan import PlanFault, plan_of
from composer.llm.prompt import Prompt
from composer.llm.prompt_file import objection_text, prompt_version
from composer.llm.replies import Reply, ReplyFault, code_of, content_of
from composer.llm.requests import Request
from composer.llm.settings import LlmSettings
from composer.profiles import DeviceProfile
from composer.render import render
from ops_crawler.operator import Operator

_CLAIMED = re.compile(r"^# operators:(.*)$", re.MULTILINE | re.IGNORECASE)
_NAME = re.compile(r"torch(?:\.\w+)+")
_NAMES_MAX = 10


@dataclass(frozen=True, slots=True)
class Answered:
    """What one reply gave."""

    candidate: Candidate
    objection: str = ""
    """What is wrong with the reply itself, in words for the model; empty where nothing is."""


class LlmComposer:
    """Writes requests and reads replies. All of it is a function of its arguments and of the replies."""

    def __init__(
        self,
        operators: Sequence[Operator],
        profile: DeviceProfile,
        settings: LlmSettings,
        model: str,
        seed: int,
    ) -> None:
        self.settings = settings
        self.model = model
        self.seed = seed
        self._profile = profile
        self._prompt = Prompt(operators, profile, settings, model, seed)

    def request(self, index: int) -> Request:
        """Return the first request for an index."""
        return self._prompt.request(index)

    def answered(self, index: int, request: Request, reply: bytes, turn: int) -> Answered:
        """Return the candidate that a reply gives, `turn` corrections after the first one.

        Raises NotACompletionError.
        """
        found = self._plan_in(index, reply) if self.settings.mode == "plan" else code_of(reply)
        return Answered(self._candidate(index, request, found, turn), found.detail)

    def refused(self, index: int, request: Request, why: str) -> Candidate:
        """Return the candidate of a request that the endpoint refused."""
        return self._candidate(index, request, Reply(why, ReplyFault.REFUSED), 0)

    def _candidate(self, index: int, request: Request, found: Reply, turn: int) -> Candidate:
        if self.settings.mode == "free":
            requested = _claimed(found.text)
        else:
            requested = tuple(operator.name for operator in self._prompt.operators(index))
        return Candidate(
            index=index,
            name=f"llm_{self.seed}_{index:06d}",
            code=found.text,
            requested_ops=requested,
            composer=self.model,
            origin="foreign",
            seed=self.seed,
            request_hash=request.hash,
            llm_mode=self.settings.mode,
            prompt_version=prompt_version(),
            repair_turns=turn,
            reply_fault=found.fault,
        )

    def _plan_in(self, index: int, reply: bytes) -> Reply:
        said = content_of(reply)
        if said.fault:
            return said
        try:
            operators = self._prompt.operators(index)
            plan = plan_of(said.text, operators, self._profile, self._prompt.assignment.rng(f"sizes/{index}"))
        except PlanFault as fault:
            return Reply(said.text, ReplyFault.NO_CODE, str(fault))
        return Reply(render(plan))


def next_request(request: Request, reply: bytes, candidate: Candidate, objection: str) -> Request | None:
    """Return the request for a correction; None where the model will not answer."""
    if candidate.reply_fault == ReplyFault.REFUSED:
        return None
    if candidate.reply_fault == ReplyFault.EMPTY_REPLY:
        return request.again()
    return request.continued(content_of(reply).text, objection_text(objection))


def _claimed(code: str) -> tuple[str, ...]:
    """Return the operators that a task of mode `free` names in its first lines."""
    found = _CLAIMED.search(code)
    return tuple(dict.fromkeys(_NAME.findall(found.group(1))))[:_NAMES_MAX] if found else ()
