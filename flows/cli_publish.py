"""The commands that hand a dataset on: `publish` and `export`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.errors import InfrastructureError, Unfinished
from flows.run_folder import RunFolder
from flows.settings import load_settings

_PANEL = "Hand a dataset on"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (publish, export):
        app.command(rich_help_panel=_PANEL)(command)


def publish(
    run_dir: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    repo: Annotated[str, typer.Option(help="Dataset repository on the Hub: ORG/NAME.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List files and sizes; push nothing.")] = False,
    public: Annotated[bool, typer.Option("--public", help="For everybody to see; else private.")] = False,
    tag: Annotated[str | None, typer.Option(help="Name of the release.", show_default="next vN")] = None,
) -> None:
    """Write a run's dataset folder, load it back and push it to the Hugging Face Hub in one commit.

    The commit replaces the release before it and gets a tag. HF_TOKEN holds the token; HF_ENDPOINT names
    another Hub.
    """
    settings = load_settings(run_dir / "settings.toml", {"run": {"run_dir": run_dir}})
    from data.hub import check_endpoint, check_repo, check_tag, check_token, push
    from data.publish import check_loads, release_files
    from data.quiet import quiet_hub_libraries
    from flows import pipeline

    check_repo(repo)
    check_tag(tag)
    check_endpoint()
    if not dry_run:
        check_token()
    quiet_hub_libraries()
    folder = RunFolder(run_dir)
    with folder.claimed():  # nobody may exchange the files while they are sent
        pipeline.judge_again(folder, settings, name=repo)
        rows = _require_publishable(folder)
        check_loads(folder.dataset)
        files = release_files(folder.dataset)
        for file in files:
            typer.echo(f"{file.size:>12,}  {file.place}")
        total = f"{len(files)} files, {sum(file.size for file in files):,} bytes, {rows:,} rows"
        if dry_run:
            typer.echo(f"{total}: would go to {repo}, {'public' if public else 'private'}")
            return
        release = push(files, repo, public=public, tag=tag, message=f"Release of {rows:,} rows")
    state = "published" if release.changed else "was there already"
    typer.echo(f"{total}: {state} as {release.tag}, commit {release.commit[:12]}: {release.url}")


def _require_publishable(folder: RunFolder) -> int:
    """Return the number of rows; raise for a run that does not add up or rows that may not be passed on."""
    from data.files import read_candidates, read_verdicts
    from data.funnel import adds_up
    from data.rows import is_licensed

    candidates = {candidate.index: candidate for candidate in read_candidates(folder.candidates)}
    verdicts = [judged.verdict for judged in read_verdicts(folder.verdicts)]
    again = f"finish it with `opweaver run --run-dir {folder.path}`"
    wrong = adds_up(candidates.keys(), verdicts)
    if wrong:
        raise Unfinished(f"{folder.path}: does not add up: {wrong}; {again}")
    unknown = sum(verdict.outcome == "infrastructure" for verdict in verdicts)
    if unknown:
        raise InfrastructureError(
            f"{folder.path}: {unknown} of {len(verdicts):,} candidates have no verdict yet; {again}"
        )
    accepted = [candidates[verdict.index] for verdict in verdicts if verdict.outcome == "accepted"]
    if not accepted:
        raise Unfinished(f"{folder.path}: has no accepted row; {again}")
    bare = [candidate for candidate in accepted if not is_licensed(candidate)]
    if bare:
        raise Unfinished(
            f"{folder.path}: {len(bare)} of {len(accepted):,} rows hold code of others without a licence, "
            f"such as {bare[0].name}; record the licence at its source, or make the run without it"
        )
    return len(accepted)


def export(
    source: Annotated[
        str, typer.Argument(help="Folder of a run, or any task set: a file, a folder, a Hub id.")
    ],
    format: Annotated[Literal["kernelbench", "trl", "verl"], typer.Option(help="Layout to write.")],
    out: Annotated[Path, typer.Option(help="New folder to write.")],
) -> None:
    """Write a dataset in the layout of KernelBench (level folders), TRL (GRPO prompts) or verl."""
    from data import export as exporting

    tasks = exporting.read_tasks(source)
    exporting.export(tasks, format, out)
    typer.echo(f"{len(tasks):,} tasks for {format}: {out}")
