"""Places that go wrong: a disk with hardly any room, a folder that is read-only for everybody."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def mounted(folder: Path, options: str) -> Iterator[Path]:
    """Give a tmpfs mounted on the folder; skip where that needs rights which this user lacks."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def small_disk(tmp_path):
    yield from mounted(tmp_path / "small", "size=256k")


@pytest.fixture
def read_only(tmp_path):
    yield from mounted(tmp_path / "locked", "ro,size=64k")
