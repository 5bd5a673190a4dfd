"""What the user sees at the end of a command: the funnel, where the rows are, a sample, one verdict."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from composer.candidate import Candidate
from data.files import read_candidates, read_verdicts
from data.funnel import adds_up, funnel
from filters.measurement import Measurement
from filters.verdict import Verdict
from flows.errors import InfrastructureError, Unfinished
from flows.rounds import is_hopeless
from flows.run_folder import RunFolder, has_enough
from flows.settings import RunSettings

OUT = Console()


def show_run(folder: RunFolder) -> None:
    """Print what a run has made, from its files."""
    judged = read_verdicts(folder.verdicts)
    codes = {candidate.index: candidate.code for candidate in read_candidates(folder.candidates)}
    accepted = [row.verdict for row in judged if row.verdict.outcome == "accepted"]
    show_funnel([row.verdict for row in judged])
    if accepted:
        OUT.print(f"\nRow 0 of {len(accepted)}:\n")
        _show_code(codes[accepted[0].index])
    _say(f"\n{len(accepted)} rows: {folder.dataset}")
    _say(f'Load them with datasets.load_dataset("{folder.dataset}", split="train")')


def show_funnel(verdicts: Sequence[Verdict]) -> None:
    """Print how many candidates ended where."""
    table = Table(title=f"{len(verdicts)} candidates", title_justify="left")
    table.add_column("stage")
    table.add_column("reason")
    table.add_column("count", justify="right")
    table.add_column("share", justify="right")
    for stage, reason, count in funnel(verdicts):
        table.add_row(stage, reason, f"{count:,}", f"{count / len(verdicts):.1%}")
    OUT.print(table)


def show_text_facts(counts: Mapping[str, int]) -> None:
    """Print in how many tasks the text shows what; one task may show several things."""
    table = Table(title="\nShown by the text (a task may show several)", title_justify="left")
    table.add_column("fact")
    table.add_column("tasks", justify="right")
    for name, count in counts.items():
        table.add_row(name, f"{count:,}")
    OUT.print(table)


def show_verdict(verdict: Verdict, measurement: Measurement | None) -> None:
    """Print one verdict and the figures that matter most."""
    stage = f" at stage {verdict.stage}" if verdict.stage else ""
    _say(f"{verdict.outcome}: {verdict.reason}{stage}" if stage else verdict.outcome)
    for name, value in {**verdict.evidence, **_key_figures(measurement or Measurement())}.items():
        _say(f"  {name}: {value if isinstance(value, str) else json.dumps(value)}")


def verdict_json(candidate: Candidate, verdict: Verdict, measurement: Measurement | None) -> str:
    """Return one verdict with all facts, in the names of `verdicts.parquet`."""
    facts = json.loads((measurement or Measurement()).to_json())
    return json.dumps(
        {
            "name": candidate.name,
            "id": candidate.id,
            "verdict": verdict.outcome,
            "reason": verdict.reason,
            "stage": verdict.stage,
            "evidence": verdict.evidence,
            **facts,
        },
        indent=1,
    )


def require_sum(planned: Sequence[Candidate], verdicts: Sequence[Verdict]) -> None:
    """Raise Unfinished unless each candidate has one verdict, InfrastructureError where one is still open."""
    wrong = adds_up([candidate.index for candidate in planned], verdicts)
    if wrong:
        raise Unfinished(f"verdicts do not add up: {wrong}; please report this")
    unknown = [verdict for verdict in verdicts if verdict.outcome == "infrastructure"]
    if unknown:
        reasons = ", ".join(sorted({verdict.reason for verdict in unknown}))
        raise InfrastructureError(
            f"{len(unknown)} of {len(verdicts):,} candidates have no verdict ({reasons}); "
            "run the same command again to finish them"
        )


def require_rows(folder: RunFolder, run: RunSettings, *, deadline_passed: bool) -> None:
    """Raise where a run ended with open candidates, or a composer with fewer rows than wanted."""
    verdicts = [row.verdict for row in read_verdicts(folder.verdicts)]
    accepted = sum(verdict.outcome == "accepted" for verdict in verdicts)
    if deadline_passed and not has_enough(verdicts, run.count):
        raise Unfinished(
            f"{folder.path}: the deadline passed with {accepted} of {run.count:,} rows; "
            "run the same command again to go on"
        )
    if run.dataset is None and accepted < run.count and is_hopeless(accepted, len(verdicts)):
        raise Unfinished(
            f"{folder.path}: gave up, {accepted} of {len(verdicts):,} candidates were accepted; "
            "look at the most frequent reason above, then change the settings that lead to it"
        )
    require_sum(read_candidates(folder.candidates), verdicts)


def require_all_measured(out: Path, verdicts: Sequence[Verdict]) -> None:
    """Raise where a deadline passed before all of a set was measured."""
    open_ones = sum(verdict.outcome == "infrastructure" for verdict in verdicts)
    if open_ones:
        raise Unfinished(
            f"{out}: the deadline passed with {len(verdicts) - open_ones:,} of {len(verdicts):,} judged; "
            "run the same command again to go on"
        )


def _key_figures(measurement: Measurement) -> dict[str, Any]:
    names = (
        "ops", "input_shapes", "output_shapes", "n_params", "eager_ms", "compile_ms", "compile_seconds",
        "peak_memory_mb",
    )  # fmt: skip
    found = {name: getattr(measurement, name) for name in names}
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in found.items()
        if value is not None
    }


def _show_code(code: str) -> None:
    if OUT.is_terminal:
        OUT.print(Syntax(code, "python", background_color="default"))
    else:
        _say(code)


def _say(text: str) -> None:
    OUT.print(text, markup=False, highlight=False, soft_wrap=True)
