"""Compose layers by rules: typed growth from an input, shapes on fake tensors, sizes solved for time."""

import hashlib
import random
from collections.abc import Iterable, Sequence

from composer.candidate import Candidate
from composer.draft import Draft
from composer.drawing import follow
from composer.plan import Plan
from composer.profiles import DeviceProfile
from composer.render import render
from composer.rules import RULES, Rule
from composer.rules.foreign import own_rules
from composer.sizes import solve, wanted_seconds
from composer.soundness import sound
from ops_crawler.operator import Operator
from ops_crawler.own_usage import UsageFault

ARITY_SHARES = {1: 3.40, 2: 83.77, 3: 7.62, 4: 2.80, 5: 1.23}
"""Per cent of all rows by number of operators (arXiv 2602.24286, table 3); the rest is from transformers."""

OPERATORS_MAX = 5
"""Operators of torch in a layer (arXiv 2602.24286, table 3); own ones count as what runs inside."""

LAYOUTS = ("NF", "NLF", "NCL", "NCHW")
"""Layouts of the first input: ranks 2 to 4."""

_TRIES_AS_DEALT = 12
"""Drafts with the dealt operators before the last of them is drawn anew, then the other."""

_TRIES_PER_ARITY = 50
"""Drafts after which one operator fewer is drawn."""

_TRIES = 200
"""Drafts before the composer gives up; with all rules, some 15 are the most that a layer needs."""


def drawn_arity(rng: random.Random) -> int:
    """Draw the number of operators of a layer."""
    return rng.choices(list(ARITY_SHARES), list(ARITY_SHARES.values()))[0]


def _joined(texts: Iterable[str | None]) -> str | None:
    """Return the distinct texts, comma-separated; None where there is none."""
    return ", ".join(dict.fromkeys(text for text in texts if text)) or None


class TooFewRulesError(ValueError):
    """The given operators leave too few rules to compose a layer. Raised by `RuleComposer`."""


class RuleComposer:
    """Composes candidate after candidate; each depends on seed, index, operators and profile alone."""

    def __init__(self, operators: Sequence[Operator], profile: DeviceProfile, seed: int) -> None:
        known = {operator.name for operator in operators}
        self._own = own_rules(operators)
        self.rules = (*(rule for rule in RULES if rule.operator in known), *self._own)
        self.profile = profile
        self.seed = seed
        if not any(rule.alone for rule in self.rules):
            raise TooFewRulesError(
                f"none of the {len(known)} operators can be composed by a rule; crawl the source `torch`"
            )
        deal = self._rng("deal")
        self._dealt = deal.sample(self.rules, len(self.rules))
        self._offsets = deal.sample(range(len(self.rules)), len(self.rules))

    def compose(self, index: int) -> Candidate:
        """Return candidate number `index`, from 0."""
        rng = self._rng(str(index))
        plan = self._plan(rng, drawn_arity(rng), index)
        return Candidate(
            index=index,
            name=f"rules_{self.seed}_{index:06d}",
            code=render(plan),
            requested_ops=tuple(step.operator for step in plan.steps if step.usage is None),
            composer="rules",
            origin="rules",
            seed=self.seed,
            source_license=_joined(step.usage.license for step in plan.steps if step.usage),
            source_path=_joined(step.operator for step in plan.steps if step.usage),
        )

    def _plan(self, rng: random.Random, arity: int, index: int) -> Plan:
        seconds = wanted_seconds(rng)
        dealt = self._deal(index) if arity > 1 else ()
        for attempt in range(_TRIES):
            count = max(1, arity - attempt // _TRIES_PER_ARITY)
            try:
                kept = dealt[: max(0, count - attempt // _TRIES_AS_DEALT)]
                draft = self._draft(rng, count, kept)
                if draft is None or not sound(draft.plan(), draft.effects):
                    continue
                plan = solve(draft.plan(), self.profile, seconds, rng)
                if plan and sound(plan, draft.effects):
                    return plan
            except UsageFault:
                continue  # an own operator does not take these sizes
        raise TooFewRulesError(
            f"{len(self.rules)} rules gave no sound layer of {arity} operators; crawl more operators"
        )

    def _deal(self, index: int) -> tuple[Rule, Rule]:
        """Return a pair of rules; n * n indices in a row, for n rules, see every ordered pair once.

        Own operators take turns as the first of every other pair: whoever brings some wants to see them.
        """
        turn, place = divmod(index, len(self._dealt))
        offset = self._offsets[turn % len(self._offsets)]
        first, second = self._dealt[place], self._dealt[(place + offset) % len(self._dealt)]
        if self._own and index % 2 == 0:
            first = self._own[index // 2 % len(self._own)]
        return first, second

    def _draft(self, rng: random.Random, arity: int, dealt: Sequence[Rule]) -> Draft | None:
        """Draw operators one by one; those dealt come first. None where one does not fit."""
        wanted = dealt or (rng.choice([rule for rule in self.rules if arity > 1 or rule.alone]),)
        draft = Draft(rng)
        running = draft.start(rng.choice([layout for layout in LAYOUTS if layout in wanted[0].layouts]))
        for place in range(arity):
            if place < len(wanted):
                rule = wanted[place]
            else:
                rule = rng.choice([rule for rule in self.rules if rule.accepts(running)])
            after = follow(draft, running, rule)
            if after is None:
                return None
            running = after
        return draft if 1 <= draft.plan().operator_count <= OPERATORS_MAX else None

    def _rng(self, purpose: str) -> random.Random:
        """Return a generator that is the same in every process; torch's own is left alone."""
        return random.Random(hashlib.sha256(f"{self.seed}/{purpose}".encode()).digest())
