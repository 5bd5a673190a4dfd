"""The processes that lift: what they may load, and how their end is told."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ops_crawler.lifting.lanes import LiftingError, _Side, outcomes

BERT = "transformers.models.bert.modeling_bert"
ROOT = Path(__file__).resolve().parents[3]


def test_the_process_of_the_extracts_cannot_import_transformers():
    text = "from ops_crawler.lifting.extract import prepare; prepare(); import transformers"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "ModuleNotFoundError: transformers must not be needed here" in done.stderr


def test_this_process_imports_neither_transformers_nor_a_text():
    text = (
        "import sys; from ops_crawler.lifting.lift import lift_classes;"
        f"print(len(lift_classes({{{BERT!r}: ['BertPooler']}})), 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "1 False\n", done.stderr


def test_a_process_that_ended_is_replaced(tmp_path):
    side = _Side("extract")
    job = {"recorded": str(tmp_path / "none.pt"), "seconds": 60}
    try:
        assert "FileNotFoundError" in side.ask(job)
        first = side.process
        first.kill()
        first.wait()
        assert "FileNotFoundError" in side.ask(job)
        assert side.process is not first
    finally:
        side.close()


def test_a_process_that_does_not_start_says_why(monkeypatch, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(LiftingError, match="the process of the originals does not start"):
        list(outcomes({BERT: ["BertPooler"]}, 60.0, 1.0))


def test_an_interrupted_process_takes_its_child_along(tmp_path):
    fifo = tmp_path / "never_written.pt"
    os.mkfifo(fifo)  # whoever opens it waits
    side = _Side("extract")
    side.ask({"recorded": str(tmp_path / "none.pt"), "seconds": 60})
    process = side.process
    process.stdin.write(json.dumps({"recorded": str(fifo), "seconds": 600}) + "\n")
    process.stdin.flush()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (child := children.read_text().strip()):
        pass
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert not Path(f"/proc/{child}").exists()
