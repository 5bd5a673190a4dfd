"""From operators to candidates, by the settings: for runs, and for the commands that do a part of one."""

import sys
from collections.abc import Sequence

from composer.candidate import Candidate
from composer.layers import MixedComposer, NoLayersError
from composer.llm.assignment import TooFewOperatorsError
from composer.llm.candidates import LlmComposer
from composer.profiles import DeviceProfile
from composer.rule_composer import RuleComposer, TooFewRulesError
from flows.errors import UsageError
from flows.llm_settings import effective, model_of
from flows.progress import Progress
from flows.settings import Settings
from ops_crawler import crawl as crawler
from ops_crawler.operator import Operator


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
    places: Sequence[int], composer: RuleComposer | MixedComposer, progress: Progress
) -> list[Candidate]:
    """Return the candidates with these indices."""
    candidates = []
    with progress.stage("composing", len(places)):
        for index in places:
            candidates.append(composer.compose(index))
            progress.advance()
    return candidates
