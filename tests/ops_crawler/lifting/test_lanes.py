"""The processes that lift: what they may load, and how their end is told."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ops_crawler.lifting.frozen import frozen
from ops_crawler.lifting.lanes import LiftingError, _Side, outcomes
from ops_crawler.lifting.lifted import Input, Scale, layer_to_dict
from ops_crawler.lifting.server import RESULTS

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
    job = {"folder": str(tmp_path / "none"), "seconds": 60}
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


def test_what_needs_too_much_memory_fails_alone(tmp_path):
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
        "    def forward(self, tensor):\n        return tensor + torch.zeros(2**30)[0]\n"
    )
    scale = Scale(
        name="small", arguments=(), inputs=(Input(name="tensor", kind="normal", dtype="float32", shape=(1,)),)
    )
    layer = dataclasses.replace(frozen().layers[0], text=text, parameters=(), scales=(scale,))
    one = {"name": layer.name, "layer": layer_to_dict(layer), "state": {}, "inputs": [torch.ones(2)]}
    torch.save(one | {"outputs": [torch.ones(2)]}, tmp_path / "layer_000.pt")
    side = _Side("extract")
    try:
        assert side.ask({"folder": str(tmp_path), "seconds": 60}) == "done"
    finally:
        side.close()
    (result,) = json.loads((tmp_path / RESULTS).read_text())
    assert result["reason"] == "extract_fails"
    assert "can't allocate memory" in result["detail"]


def test_an_interrupted_process_takes_its_child_along(tmp_path):
    fifo = tmp_path / "layer_000.pt"
    os.mkfifo(fifo)  # whoever opens it waits
    side = _Side("extract")
    side.ask({"folder": str(tmp_path / "none"), "seconds": 60})
    process = side.process
    process.stdin.write(json.dumps({"folder": str(tmp_path), "seconds": 600}) + "\n")
    process.stdin.flush()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (child := children.read_text().strip()):
        pass
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert not Path(f"/proc/{child}").exists()
