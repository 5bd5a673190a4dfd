"""docs/loaders.md does what it says: its commands and code blocks run, in their order."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from tests.data.test_dataset import row, write

PAGE = Path(__file__).parents[2] / "docs" / "loaders.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Run the page on a small set and give the names that it defines."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.chdir(tmp_path)
    rows = [row(0, "torch.exp"), row(1), row(2)]
    write(tmp_path / "runs" / "quickstart" / "dataset", [{**each, "compile_ms": 0.5} for each in rows])
    names: dict[str, object] = {}
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text, PAGE.name, "exec"), names)
        elif kind == "sh":
            done = CliRunner().invoke(app, shlex.split(text)[1:], catch_exceptions=False)
            assert done.exit_code == 0, done.output
    return names


def test_the_page_shows_every_format():
    assert [kind for kind, _ in BLOCKS].count("sh") == 3
    commands = " ".join(text for kind, text in BLOCKS if kind == "sh")
    assert re.findall(r"--format (\w+)", commands) == ["kernelbench", "trl", "verl"]


def test_the_page_runs(page):
    assert (page["tasks"].num_rows, page["easy"]["id"][:]) == (3, [row(0, "torch.exp")["id"]])
    assert (page["names"], page["speedups"]) == (["torch.exp"], [4.0] * 3)
    assert [file.name for file in page["level2"]] == ["1_Linear_exp.py", "2_Linear_exp.py"]
    assert page["row_id"] == row(1)["id"]
    assert page["rewards"] == [1.0]
    assert [message["role"] for message in page["messages"]] == ["user"]
    assert (page["reference"], page["baseline_ms"]) == (row(0)["code"], 2.0)
