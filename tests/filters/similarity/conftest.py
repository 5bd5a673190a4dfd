"""Tasks written for these tests, and the material beside the project, where it is there."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

SHARED = Path(__file__).parents[4] / "shared"
OPS_6K = SHARED / "reference" / "ops6k" / "cuda_agent_ops_6k.parquet"
CASES = SHARED / "cases"


def _task(body: str, *, inputs: str = "[torch.rand(4, 8)]", init: str = "[]") -> str:
    return f"""\
import torch
import torch.nn as nn
import torch.nn.functional as F

{textwrap.dedent(body)}

def get_inputs():
    return {inputs}


def get_init_inputs():
    return {init}
"""


@pytest.fixture(scope="session")
def task() -> Callable[..., str]:
    """Wraps a class `Model` into a whole task: `task(body, inputs="[...]", init="[...]")`."""
    return _task


@pytest.fixture(scope="session")
def cases() -> dict[str, str]:
    """The task files among the cases, by stem."""
    if not CASES.exists():
        pytest.skip("needs ../shared/cases")
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(CASES.glob("*_*.py"))}


@pytest.fixture(scope="session")
def ops_6k() -> list[dict[str, str]]:
    """The rows of CUDA-Agent-Ops-6K."""
    if not OPS_6K.exists():
        pytest.skip("needs ../shared/reference/ops6k")
    rows: list[dict[str, str]] = pq.read_table(OPS_6K).to_pylist()
    return rows
