"""`opweaver compose` with a model: candidates without running any, and what they would cost."""

from collections.abc import Sequence
from pathlib import Path

import typer

from composer.llm.costs import Tokens, estimated
from composer.llm.requests import Request
from composer.profiles import DeviceProfile
from data.files import write_candidates
from data.ledger import Ledger
from flows.composing import llm_composer_of
from flows.errors import Unfinished, UsageError
from flows.llm_settings import price_of
from flows.progress import Progress
from flows.settings import Settings
from ops_crawler.operator import Operator


def replies_beside(out: Path) -> Path:
    """Return where the replies behind a file of candidates are kept. Raises UsageError for a folder."""
    if not out.name or out.is_dir():
        raise UsageError(f"--out {out}: this is a folder; give a file name such as candidates.parquet")
    return out.with_suffix(".replies.sqlite")


def compose(
    out: Path, count: int, operators: Sequence[Operator], profile: DeviceProfile, settings: Settings
) -> None:
    """Ask for candidates and write them; replies of an earlier start are not asked for again.

    Raises Unfinished where the limit of costs was reached first; what there is, is written then.
    """
    from flows.llm_asking import asking

    with (
        Ledger.open(replies_beside(out)) as ledger,
        asking(settings, operators, profile, ledger) as llm,
    ):
        candidates = llm.finish(llm.first(range(count)), Progress())
        write_candidates(out, candidates)
        typer.echo(f"{llm.bought()}; replies: {ledger.path}")
        if llm.cost_limit:
            raise Unfinished(
                f"{out}: stopped at the limit of costs with {len(candidates):,} of {count:,} candidates "
                f"({llm.cost_limit}); raise --max-cost and run the same command again to go on"
            )
        faults = [candidate.reply_fault for candidate in candidates if candidate.reply_fault]
    if faults:
        counted = ", ".join(f"{faults.count(fault)} {fault}" for fault in dict.fromkeys(faults))
        typer.echo(f"replies without a task: {counted}")


def dry_run(
    out: Path, count: int, operators: Sequence[Operator], profile: DeviceProfile, settings: Settings
) -> None:
    """Print what would be asked and what that takes; sends nothing."""
    composer = llm_composer_of(settings, operators, profile)
    price = price_of(composer.settings)
    requests = [composer.request(index) for index in range(count)]
    known = _known(replies_beside(out), requests)
    tokens = sum(map(estimated, requests[known:]), Tokens())
    _show(requests[0])
    cost = f"${tokens.cost(price):.2f}" if price else f'unknown, [llm.prices."{composer.model}"] is not set'
    typer.echo(
        f"requests: {count - known:,}, and {known:,} replied to before\n"
        f"tokens, estimated: {tokens.prompt:,} of prompts, {tokens.reply:,} of replies; "
        "corrections come on top\n"
        f"cost: {cost}"
    )


def _known(path: Path, requests: Sequence[Request]) -> int:
    if not path.is_file():
        return 0
    with Ledger.open(path) as ledger:
        return sum(ledger.reply(request) is not None for request in requests)


def _show(request: Request) -> None:
    """Print the first request as a reader wants to see it."""
    for message in request.messages:
        typer.echo(f"--- {message['role']}\n{message['content']}\n")
    others = {name: value for name, value in request.body.items() if name != "messages"}
    typer.echo(f"--- {', '.join(f'{name}: {value}' for name, value in others.items())[:2000]}\n")
