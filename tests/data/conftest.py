"""Places that go wrong, and a Hub client that cannot leave the machine."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.local_hub import WRITER, serving


@pytest.fixture
def offline_hub(monkeypatch, tmp_path_factory):
    """Keep the Hub's libraries off the network and out of the user's cache, whenever they were imported."""
    import datasets
    import huggingface_hub

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path_factory.mktemp("hub"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


@pytest.fixture
def hub(monkeypatch):
    """A local Hub that this process' client talks to, with a token that may write."""
    import huggingface_hub

    with serving() as server:
        resolve = server.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", server.url)
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", resolve)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", WRITER)
        yield server


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
