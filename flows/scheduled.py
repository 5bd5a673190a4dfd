"""A dataset on a schedule, for the deployment in `prefect.yaml`."""

import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from prefect import flow
from prefect.runtime import flow_run


@flow(name="regenerate", retries=2, retry_delay_seconds=600)
def regenerate(config: Path | None = None, options: Sequence[str] = ()) -> Path:
    """Make a dataset in a folder named after the day it was scheduled for; return the folder.

    The day is the seed too, so every week has tasks of its own. A retry goes on where the run stopped: it is
    the same command. Raises CalledProcessError where the command fails.
    """
    return make_dataset(flow_run.get_scheduled_start_time().date(), config, options)


def make_dataset(day: date, config: Path | None, options: Sequence[str]) -> Path:
    """Run the command in a process of its own, which a signal or a fault can end without this one."""
    run_dir = Path("runs") / f"scheduled-{day.isoformat()}"
    chosen = ["--config", str(config)] if config else []
    seed = f"{day:%Y%m%d}"
    command = [sys.executable, "-c", "from flows.cli import main; main()", "run", *chosen]
    subprocess.run([*command, "--run-dir", str(run_dir), "--seed", seed, *options], check=True)
    return run_dir
