"""Compose layers by rules: typed growth from an input, shapes without storage, sizes solved for time."""

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence

from composer.candidate import Candidate
from composer.draft import Draft, Running
from composer.drawing import JOINS, bridge, follow, join
from composer.easy import easy_rules, easy_seconds
from composer.plan import Plan
from composer.presets import PRESETS
from composer.profiles import DeviceProfile
from composer.render import render
from composer.roofline import estimate
from composer.rules import FAMILIES, Rule
from composer.rules.foreign import own_rules
from composer.settings import DTYPE_SHARES, FloatType
from composer.sizes import moved, solve, wanted_seconds
from composer.soundness import sound
from ops_crawler.operator import Operator
from ops_crawler.own_usage import UsageFault

ARITY_SHARES = {1: 3.40, 2: 83.77, 3: 7.62, 4: 2.80, 5: 1.23}
"""Per cent of all rows by number of operators (arXiv 2602.24286, table 3); the rest is from transformers."""

OPERATORS_MAX = 5
"""Operators of torch in a layer (arXiv 2602.24286, table 3); own ones count as what runs inside."""

PRESET_SHARE = 0.35
"""Drafts that take their sizes from a real model, where one has the layout."""

BRANCHED_SHARE = 0.3
"""Layers of two operators and more in which two branches meet, where shapes allow."""

_TRIES_AS_DEALT = 16
"""Drafts with both dealt operators, in either order, before the second is drawn anew."""

_TRIES_WITH_FIRST = 48
"""Drafts with the first dealt operator before both are drawn anew."""

_TRIES_PER_ARITY = 75
"""Drafts after which one operator fewer is drawn."""

_TRIES_PER_TIME = 25
"""Drafts after which another eager time is wanted: few layers reach the longest in a device's memory."""

_TRIES = 300
"""Drafts before the composer gives up."""


def drawn_arity(rng: random.Random) -> int:
    """Draw the number of operators of a layer."""
    return rng.choices(list(ARITY_SHARES), list(ARITY_SHARES.values()))[0]


def _joined(texts: Iterable[str | None]) -> str | None:
    """Return the distinct texts, comma-separated; None where there is none, or where one is not known."""
    distinct = dict.fromkeys(texts)
    return ", ".join(text for text in distinct if text) or None if all(distinct) else None


class TooFewRulesError(ValueError):
    """The given operators leave too few rules to compose a layer. Raised by `RuleComposer`."""


class RuleComposer:
    """Composes candidate after candidate; each depends on index and constructor arguments alone."""

    def __init__(
        self,
        operators: Sequence[Operator],
        profile: DeviceProfile,
        seed: int,
        *,
        easy_share: float = 0.0,
        dtypes: Mapping[FloatType, float] = DTYPE_SHARES,
    ) -> None:
        known = {operator.name for operator in operators}
        self._own = own_rules(operators)
        self.families = [
            found
            for rules in FAMILIES.values()
            if (found := [rule for rule in rules if rule.operator in known])
        ]
        if self._own:
            self.families.append(list(self._own))
        self.rules = tuple(rule for family in self.families for rule in family)
        self.profile = profile
        self.seed = seed
        self.easy_share = easy_share
        self.dtypes = dtypes
        if not any(rule.alone for rule in self.rules):
            raise TooFewRulesError(
                f"none of the {len(known)} operators can be composed by a rule; crawl the source `torch`"
            )
        deal = self._rng("deal")
        self._dealt = _spread(self.families, deal)
        self._offsets = deal.sample(range(len(self.rules)), len(self.rules))

    def compose(self, index: int, ladder_steps: int = 0) -> Candidate:
        """Return candidate number `index`, from 0, its sizes moved by so many steps of the ladder."""
        rng = self._rng(str(index))
        easy = easy_rules(self.rules) if self._rng(f"easy/{index}").random() < self.easy_share else ()
        plan = self._plan(rng, 1 if easy else drawn_arity(rng), index, easy)
        plan = moved(plan, self.profile, ladder_steps)
        return Candidate(
            index=index,
            name=f"rules_{self.seed}_{index:06d}",
            code=render(plan),
            requested_ops=tuple(step.operator for step in plan.steps if step.operator and not step.usage),
            ladder_steps=ladder_steps,
            predicted_ms=estimate(plan, self.profile).seconds * 1e3,
            composer="rules",
            origin="rules",
            seed=self.seed,
            source_license=_joined(step.usage.license for step in plan.steps if step.usage),
            source_path=_joined(step.operator for step in plan.steps if step.usage),
        )

    def _plan(self, rng: random.Random, arity: int, index: int, easy: Sequence[Rule]) -> Plan:
        dtype = rng.choices(list(self.dtypes), list(self.dtypes.values()))[0]
        rules = [rule for rule in self.rules if dtype == "float32" or rule.half]
        if not rules:
            dtype, rules = "float32", list(self.rules)
        easy = [rule for rule in easy if rule in rules]
        for attempt, wanted in enumerate(self._wishes(rng, arity, index, easy or rules)):
            count = max(1, arity - attempt // _TRIES_PER_ARITY)
            if attempt % _TRIES_PER_TIME == 0:
                seconds = easy_seconds(rng) if easy else wanted_seconds(rng)
            draft = self._draft(rng, count, wanted[:count], rules, dtype)
            plan = self._solved(draft, seconds, rng) if draft else None
            if plan:
                return plan
        raise TooFewRulesError(
            f"{len(self.rules)} rules gave no sound layer of {arity} operators; crawl more operators"
        )

    def _solved(self, draft: Draft, seconds: float, rng: random.Random) -> Plan | None:
        """Return the layer with sizes at which it is sound; None where there are none."""
        try:
            if not sound(draft.plan(), draft.effects):
                return None
            plan = solve(draft.plan(), self.profile, seconds, rng)
            return plan if plan and sound(plan, draft.effects) else None
        except (RuntimeError, UsageFault):  # sizes that an operator refuses, such as too short an axis
            return None

    def _wishes(
        self, rng: random.Random, arity: int, index: int, rules: Sequence[Rule]
    ) -> Iterator[tuple[Rule, ...]]:
        """Yield the operators that a draft must start with: the dealt ones first, any at last."""
        dealt = tuple(rule for rule in self._deal(index) if rule in rules) if arity > 1 else ()
        for attempt in range(_TRIES):
            if attempt < _TRIES_AS_DEALT and dealt:
                yield dealt if attempt % 2 == 0 else dealt[::-1]
            elif attempt < _TRIES_WITH_FIRST and dealt:
                pair = (dealt[0], rng.choice(rules))
                yield pair if attempt % 2 == 0 else pair[::-1]
            else:
                yield (rng.choice([rule for rule in rules if arity > 1 or rule.alone]),)

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

    def _draft(
        self, rng: random.Random, arity: int, wanted: Sequence[Rule], rules: Sequence[Rule], dtype: str
    ) -> Draft | None:
        """Draw operators; None where one does not fit, or more run than a layer may have."""
        if arity == 1 and not wanted[0].alone:
            return None
        try:
            draft = self._grown(rng, arity, wanted, rules, dtype)
        except (RuntimeError, UsageFault):  # an operator does not take these sizes
            return None
        return draft if draft and 1 <= draft.plan().operator_count <= OPERATORS_MAX else None

    def _grown(
        self, rng: random.Random, arity: int, wanted: Sequence[Rule], rules: Sequence[Rule], dtype: str
    ) -> Draft | None:
        """Draw operators one by one; those wanted come first. None where one does not fit."""
        layout = rng.choice(wanted[0].starts())
        presets = [preset for preset in PRESETS if preset.layout == layout]
        preset = rng.choice(presets) if presets and rng.random() < PRESET_SHARE else None
        draft = Draft(rng, dtype, preset)
        running = draft.start(layout, wanted[0].drawn)
        waiting = rng.choice(list(JOINS)) if arity > 1 and rng.random() < BRANCHED_SHARE else None
        branch: Running | None = None
        for place in range(arity):
            rule = wanted[place] if place < len(wanted) else _next(rng, running, rules)
            if place == 0 and waiting:
                branch = follow(draft, running, rule, target=waiting)
                if branch is None:
                    return None
                continue
            after = follow(draft, bridge(draft, running, rule), rule)
            if after is None:
                return None
            running = after
        return draft if branch is None or waiting is None or join(draft, running, branch, waiting) else None

    def _rng(self, purpose: str) -> random.Random:
        """Return a generator that is the same in every process; torch's own is left alone."""
        return random.Random(hashlib.sha256(f"{self.seed}/{purpose}".encode()).digest())


def _next(rng: random.Random, running: Running, rules: Sequence[Rule]) -> Rule:
    return rng.choice([rule for rule in rules if rule.accepts(running)])


def _spread(families: Sequence[Sequence[Rule]], rng: random.Random) -> list[Rule]:
    """Return all rules in an order in which every stretch holds its share of every family."""
    placed = []
    for family in families:
        start = rng.random()
        for number, rule in enumerate(rng.sample(family, len(family))):
            placed.append(((number + start) / len(family), rule.operator, rule))
    return [rule for _, _, rule in sorted(placed, key=lambda entry: entry[:2])]
