"""The check of a release sees what is wrong with a dataset folder, and which labels are never called."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "check_release.py"
TASK = """
import torch
import torch.nn as nn


class Gate(nn.SiLU):
    pass


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, {out}), Gate())

    def forward(self, x):
        return torch.tanh(self.layers(x)).softmax(-1)


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return [8]
"""
NEEDS_VALUES = TASK.replace("(x):", "(x):\n        x = x[: int(x.abs().max()) + 1]")
SEEN = ["torch.nn.Linear", "torch.nn.SiLU", "torch.tanh", "torch.softmax"]


def row(code, ops=SEEN, **changes):
    values = {
        "id": hashlib.sha256(code.encode()).hexdigest(),
        "code": code,
        "ops": json.dumps(ops),
        "data_source": f"torch#{len(ops)}",
        "split": "train",
        "difficulty": "hard",
        "input_dtypes": ["float32"],
        "device_name": "a device",
        "torch_version": "2.13.0",
        "timing_samples": 10,
    }
    return values | dict.fromkeys(("eager_ms", "compile_ms", "eager_ms_iqr", "compile_ms_iqr"), 2.0) | changes


@pytest.fixture
def check(tmp_path):
    def run(*rows):
        (tmp_path / "data").mkdir()
        pq.write_table(pa.Table.from_pylist(list(rows)), tmp_path / "data" / "train.parquet")
        command = [sys.executable, SCRIPT, tmp_path, "--rows", str(len(rows))]
        done = subprocess.run(command, capture_output=True, text=True)
        assert not done.stderr
        return done

    return run


def lines(done, *, broken):
    """Return the beginnings of the lines that are broken, or kept; what follows names rows."""
    mark = "BROKEN" if broken else "ok"
    return [line[7:57].strip() for line in done.stdout.splitlines() if line.startswith(mark)]


def test_labels_that_are_called_are_told_from_others(check):
    good = row(TASK.format(out=8)), row(NEEDS_VALUES.format(out=8))  # the second needs real tensors
    labels = (
        "torch.nn.functional.silu",
        "torch.sigmoid",
        "torch.nn.ReLU",
    )  # called by torch alone, or by nobody
    wrong = [row(TASK.format(out=size), [*SEEN, label]) for size, label in enumerate(labels, 9)]
    failing = row("import missing_module")
    done = check(*good, *wrong, failing)
    assert done.returncode == 1
    (line,) = (line for line in done.stdout.splitlines() if "another execution does not see" in line)
    assert line.split()[:1] + line.split()[-3:] == ["BROKEN", "4", "wanted", "0"]
    for bad, label in zip(wrong, labels, strict=True):
        assert f"{bad['id']}: {label}\n" in done.stdout
    assert f"{failing['id']}: ModuleNotFoundError" in done.stdout


def test_what_is_wrong_with_rows_is_named(check):
    good = row(TASK.format(out=8))
    other_size = row(TASK.format(out=32), split="validation", eager_ms=0.5)
    relu = row("import torch\n" + TASK.format(out=8), id="other", compile_ms=None)
    broken = lines(check(good, good, other_size, relu), broken=True)
    for what in (
        "exact duplicates",
        "canonical duplicates",
        "ids that are not the digest of the code",
        "rows without a whole baseline",
        "rows outside [1.15, 87.0] ms",
        "operator sets on both sides of the split",
    ):
        assert what in broken
