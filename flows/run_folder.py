"""The files of a run, and who may write them."""

import dataclasses
import fcntl
import json
import os
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from data.errors import InputError, StorageError
from data.files import read_verdicts
from data.ledger import Ledger
from data.tables import replacing, storage_error
from filters.environment import Environment
from filters.verdict import Verdict
from flows import llm_settings
from flows.errors import InfrastructureError
from flows.settings import Settings, settings_text

_NOT_PART_OF_THE_RESULT = {
    "run": {"run_dir", "deadline_minutes", "engine", "address"},
    "llm": set(llm_settings.NOT_PART_OF_THE_RESULT),
}


class RunFolder:
    """`runs/NAME/`; every file is replaced whole, so a reader never sees half of one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings = path / "settings.toml"
        self.environment = path / "environment.json"
        self.ledger = path / "ledger.sqlite"
        self.operators = path / "operators.parquet"
        self.candidates = path / "candidates.parquet"
        self.verdicts = path / "verdicts.parquet"
        self.dataset = path / "dataset"

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Make the folder if need be and keep every other `opweaver` out of it for the block.

        Raises StorageError where it cannot be made, InfrastructureError where another one is at work.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError as error:
            raise storage_error(self.path, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise InfrastructureError(
                f"{self.path}: another opweaver is at work here; wait for it or choose another run directory"
            ) from None
        finally:
            os.close(descriptor)

    def write_settings(self, settings: Settings) -> None:
        """Record the settings as used. Raises StorageError."""
        with replacing(self.settings) as temporary:
            temporary.write_text(settings_text(settings), encoding="utf-8")

    def write_environments(self, environments: Sequence[Environment]) -> None:
        """Record the machine that measures, or a list of several kinds. Raises StorageError."""
        found = [dataclasses.asdict(environment) for environment in environments]
        text = json.dumps(found[0] if len(found) == 1 else found, indent=1)
        with replacing(self.environment) as temporary:
            temporary.write_text(text + "\n", encoding="utf-8")

    def read_environments(self) -> list[Environment]:
        """Return the machines of what counts. Raises InputError where nothing was measured."""
        try:
            found = json.loads(self.environment.read_text(encoding="utf-8"))
            return [Environment.from_dict(each) for each in (found if isinstance(found, list) else [found])]
        except (OSError, ValueError, TypeError):
            raise InputError(
                f"{self.environment}: missing or unreadable, so nothing was measured here; "
                "give the directory of a run"
            ) from None

    def is_finished(self, settings: Settings) -> bool:
        """Return whether a run with these settings has its rows: then there is nothing to do.

        `verdicts.parquet` is written last, so it agrees with the ledger only when all files do.
        """
        try:
            used = Settings(**tomllib.loads(self.settings.read_text(encoding="utf-8")))
            if _result_settings(used) != _result_settings(settings) or not self.dataset.is_dir():
                return False
            with Ledger.open(self.ledger, create=False) as ledger:
                verdicts = ledger.verdicts()
            written = [judged.verdict for judged in read_verdicts(self.verdicts)]
        except (OSError, ValueError, InputError, StorageError):
            return False
        return verdicts == written and has_enough(verdicts, settings.run.count)


def has_enough(verdicts: list[Verdict], wanted: int) -> bool:
    """Return whether the wanted number is accepted and nothing is left open."""
    outcomes = [verdict.outcome for verdict in verdicts]
    return outcomes.count("accepted") == wanted and "infrastructure" not in outcomes


def _result_settings(settings: Settings) -> dict[str, object]:
    return settings.model_dump(exclude=_NOT_PART_OF_THE_RESULT)
