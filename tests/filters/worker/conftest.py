import _thread
import sys
import threading

import pytest
import torch

from filters.policy import Policy
from filters.worker.conduct import Watch
from filters.worker.subject import Subject


@pytest.fixture(scope="session")
def watch():
    """The one watch of this process; an audit hook cannot be removed."""
    start = _thread.start_new_thread
    yield Watch()
    _thread.start_new_thread = start
    vars(threading)["_start_new_thread"] = start


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The folders that a worker has: it starts in `work`."""
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def subject(task, watch, scratch, monkeypatch):
    """Load and build a task in this process, with draw 0 and its output."""
    monkeypatch.setitem(sys.modules, "task", None)
    watch.events.clear()

    def make(body, inputs="[torch.randn(8, 16)]", init="[]", built=True):
        job = {"code": task(body, inputs, init), "policy": Policy().model_dump(), "compile_backend": "eager"}
        made = Subject(device=torch.device("cpu"), watch=watch, job=job)
        made.load()
        if built:
            made.build()
            made.inputs = made.draw(0)
            made.output = made.forward(made.fresh_inputs())
        return made

    return make
