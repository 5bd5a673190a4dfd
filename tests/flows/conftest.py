"""The real command in child processes, one Prefect server for all of them, one small run that tests share."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from data.ledger import Ledger
from flows.measured import measured
from flows.prefect_server import PrefectServer
from flows.run_folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-c", "from flows.cli import main; main()"]
QUICK = {
    "PYTHONPATH": str(ROOT),
    "OPWEAVER_FILTERS__COMPILE_BACKEND": "aot_eager",
    "OPWEAVER_FILTERS__DEVICE": "cpu",
}


@dataclass(frozen=True)
class Command:
    """Starts `opweaver` in a folder of its own."""

    folder: Path
    environment: dict[str, str]

    def start(self, *options: object) -> subprocess.Popen[str]:
        """Start it; the caller waits for it or kills it."""
        return subprocess.Popen(
            [*COMMAND, *map(str, options)],
            cwd=self.folder, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def __call__(self, *options: object) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        process = self.start(*options)
        stdout, stderr = process.communicate()
        return subprocess.CompletedProcess(options, process.returncode, stdout, stderr)


@pytest.fixture(scope="session")
def prefect_url():
    """One server instead of a temporary one per run; also the way in which users keep their own."""
    with PrefectServer().api():
        from prefect.settings import PREFECT_API_URL

        yield PREFECT_API_URL.value()


@pytest.fixture
def opweaver(tmp_path):
    """The command for whatever needs no Prefect."""
    return Command(tmp_path, os.environ | QUICK)


@pytest.fixture
def opweaver_run(tmp_path, prefect_url):
    """The command for runs."""
    return Command(tmp_path, os.environ | QUICK | {"PREFECT_API_URL": prefect_url})


@pytest.fixture(scope="session")
def small_run(tmp_path_factory, prefect_url):
    """The folder of an undisturbed run that ended with 3 rows, and what it printed."""
    folder = tmp_path_factory.mktemp("small")
    command = Command(folder, os.environ | QUICK | {"PREFECT_API_URL": prefect_url})
    done = command("run", "--run-dir", "run", "--count", 3)
    assert done.returncode == 0, done.stderr
    return folder / "run", done


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 256 KiB; skips where mounting one needs rights that this user lacks."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def measured_ids() -> Callable[[Path], dict[str, float]]:
    """Return the wall time of each measurement in a ledger by id: one that is made anew differs."""

    def read(run_dir: Path) -> dict[str, float]:
        folder = RunFolder(run_dir)
        if not folder.environment.exists():
            return {}
        with Ledger.open(folder.ledger) as ledger:
            measurements = measured(ledger, folder.read_environments())
        return {id: measurement.wall_seconds or 0.0 for id, measurement in measurements.items()}

    return read
