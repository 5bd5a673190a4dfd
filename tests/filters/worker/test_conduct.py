import _thread
import atexit
import gc
import math
import os
import sys
import threading
import time
import warnings

import pytest
import torch
from torch.overrides import TorchFunctionMode

from filters.worker import clock
from filters.worker.building import conduct
from filters.worker.conduct import Canaries, Snapshot

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Passing(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_ordinary_work_changes_nothing(scratch):
    snapshot = Snapshot()
    torch.nn.LSTM(4, 4)(torch.randn(2, 4))
    layer = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)
    torch.nn.TransformerEncoder(layer, 2).eval()(torch.randn(2, 3, 8))
    torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(4, 4))(torch.randn(2, 4))
    torch.vmap(torch.sin)(torch.randn(2, 4))
    torch.linalg.inv(torch.eye(3))
    assert snapshot.changes() == ()


PATCHES = [
    (torch, "allclose", "replaced torch.allclose"),
    (torch.nn.functional, "relu", "replaced torch.nn.functional.relu"),
    (torch.Tensor, "sigmoid", "added Tensor.sigmoid"),
    (torch.Tensor, "__matmul__", "added Tensor.__matmul__"),
    (torch.nn.Linear, "forward", "replaced Linear.forward"),
    (torch.nn.LayerNorm, "__call__", "added LayerNorm.__call__"),
    (torch, "calls", "added torch.calls"),
    (time, "perf_counter", "replaced time.perf_counter"),
    (math, "pi", "replaced math.pi"),
    (clock, "perf_counter_ns", "replaced filters.worker.clock.perf_counter_ns"),
    (clock, "_WARM_UPS", "replaced filters.worker.clock._WARM_UPS"),
]


@pytest.mark.parametrize(("owner", "name", "change"), PATCHES)
def test_patches(scratch, monkeypatch, owner, name, change):
    snapshot = Snapshot()
    monkeypatch.setattr(owner, name, lambda *_: 3, raising=False)
    assert snapshot.changes() == (change,)


def enter_mode():
    mode = Passing()
    mode.__enter__()
    return lambda: mode.__exit__(None, None, None)


def set_default_dtype():
    torch.set_default_dtype(torch.float64)
    return lambda: torch.set_default_dtype(torch.float32)


def set_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    return lambda: torch.set_num_threads(before)


def switch_off_gradients():
    torch.set_grad_enabled(False)
    return lambda: torch.set_grad_enabled(True)


def switch_on_autocast():
    torch.set_autocast_enabled("cpu", True)
    return lambda: torch.set_autocast_enabled("cpu", False)


def switch_off_flash_attention():
    torch.backends.cuda.enable_flash_sdp(False)
    return lambda: torch.backends.cuda.enable_flash_sdp(True)


def switch_off_collection():
    gc.disable()
    return gc.enable


def set_variable():
    os.environ["OPWEAVER_TEST"] = "1"
    return lambda: os.environ.pop("OPWEAVER_TEST")


def extend_search_path():
    sys.path.append("elsewhere")
    return sys.path.pop


def make_warnings_errors():
    before = list(warnings.filters)
    warnings.simplefilter("error")
    return lambda: warnings.filters.__setitem__(slice(None), before)


def replace_a_module():
    sys.modules["math"] = torch
    return lambda: sys.modules.__setitem__("math", math)


def override_a_kernel():
    library = torch.library.Library("aten", "IMPL")
    library.impl("relu", lambda x: x, "CPU")
    return library._destroy


def trace():
    sys.setprofile(lambda *_: None)
    return lambda: sys.setprofile(None)


def hook_all_modules():
    return torch.nn.modules.module.register_module_forward_hook(lambda *_: None).remove


def make_cudnn_deterministic():
    torch.backends.cudnn.deterministic = True
    return lambda: setattr(torch.backends.cudnn, "deterministic", False)


SETTINGS = [
    (hook_all_modules, "changed hooks of all modules"),
    (make_cudnn_deterministic, "changed cuDNN"),
    (set_default_dtype, "changed the default dtype"),
    (set_threads, "changed the number of threads"),
    (switch_off_gradients, "changed the gradient mode"),
    (switch_on_autocast, "changed automatic mixed precision"),
    (switch_off_flash_attention, "changed attention kernels"),
    (switch_off_collection, "changed the garbage collector"),
    (set_variable, "changed the environment"),
    (extend_search_path, "changed the search path"),
    (make_warnings_errors, "changed filters of warnings"),
    (replace_a_module, "changed imported modules"),
    (override_a_kernel, "changed kernels of aten"),
    (enter_mode, "changed function modes"),
    (trace, "changed tracing"),
]


@pytest.mark.parametrize(("change", "expected"), SETTINGS)
def test_settings(scratch, change, expected):
    snapshot = Snapshot()
    restore = change()
    try:
        found = snapshot.changes()
    finally:
        restore()
    assert expected in found
    assert snapshot.changes() == ()


def test_exit_handlers(scratch):
    snapshot = Snapshot()
    atexit.register(trace)
    found = snapshot.changes()
    atexit.unregister(trace)
    assert found == ("changed exit handlers",)


@pytest.mark.parametrize("folder", ["work", "home"])
def test_files(scratch, folder):
    snapshot = Snapshot()
    (scratch / folder / "left").write_text("x")
    assert snapshot.changes() == ("changed files in the working directory",)


def write(path):
    path.write_text("x")


def write_by_descriptor(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))


def start_and_end_a_thread(path):
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()


EVENTS = [
    (write, "wrote a file"),
    (write_by_descriptor, "wrote a file"),
    (lambda path: path.mkdir(), "changed files"),
    (start_and_end_a_thread, "started a thread"),
    (lambda path: _thread.start_new_thread(int, ()), "started a thread"),
    (lambda path: os.putenv("OPWEAVER_TEST", "1"), "changed the environment"),
    (lambda path: os.chdir("."), "changed the working directory"),
    (lambda path: gc.get_objects(), "walked the garbage collector"),
]


@pytest.fixture
def _no_variable_left():
    """`os.putenv` goes past `os.environ`, into the environment of every child process."""
    yield
    os.unsetenv("OPWEAVER_TEST")


@pytest.mark.usefixtures("_no_variable_left")
@pytest.mark.parametrize(("act", "event"), EVENTS)
def test_events_while_the_candidate_runs(watch, tmp_path, act, event):
    watch.events.clear()
    act(tmp_path / "before")
    assert watch.events == set()
    with watch.candidate():
        act(tmp_path / "during")
    assert event in watch.events


def test_reading_and_printing_are_no_events(watch, tmp_path):
    watch.events.clear()
    (tmp_path / "text").write_text("x")
    with watch.candidate():
        (tmp_path / "text").read_text()
        print("progress", end="")
        torch.randn(100, 100).mm(torch.randn(100, 100))
        tmp_path.mkdir(exist_ok=True)
    assert watch.events == set()


def test_canaries_notice_writes():
    like = [torch.randn(4, 7, 5), torch.zeros(0), torch.ones(3, dtype=torch.complex64)]
    canaries = Canaries(like)
    assert canaries.intact()
    for found in gc.get_objects():
        if type(found) is torch.Tensor and found.dim() == 3 and bool((found == 1).all()):
            found.fill_(float("nan"))
    assert not canaries.intact()


@pytest.mark.parametrize(
    "write_to_input",
    [
        "x.mul_(2)",
        "x.data.mul_(2)",
        "x.view(-1)[3] = 7",
        "x.numpy()[0, 0] = 7",
        "x.add_(1).sub_(1)",
        "x.t_()",
    ],
)
def test_inputs_that_are_written_to(subject, write_to_input):
    made = subject(
        f"""
        class Model(nn.Module):
            def forward(self, scale, x):
                {write_to_input}
                return x * scale
        """,
        "[torch.rand(1), torch.randn(8, 16)]",
    )
    facts = conduct(made, Snapshot())
    assert facts["mutated_inputs"] == [1]
    assert "changed files in the working directory" not in facts["side_effects"]


def test_containers_that_are_emptied(subject):
    made = subject(
        "class Model(nn.Module):\n    def forward(self, pair):\n        return pair.pop().sin()",
        "[[torch.randn(3), torch.randn(3)]]",
    )
    assert conduct(made, Snapshot())["mutated_inputs"] == [0]


def test_writing_to_own_intermediates_is_fine(subject):
    made = subject(
        """
        class Model(nn.Module):
            def forward(self, x):
                y = x * 2
                y.add_(1).relu_()
                y[:, 0] = 0.5
                return y
        """
    )
    assert conduct(made, Snapshot())["mutated_inputs"] == []
