"""Which public names of torch a task calls, found by replacing them: a witness beside the stage `labels`.

That stage watches torch's function modes and hooks. This module shares nothing with it: every function of
torch's public namespaces, every method of a tensor and the call of a module are replaced by ones that note
their names. Tasks run on fake tensors, on real ones where an operator has no fake form.
"""

import functools
import inspect
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

_NAMESPACES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft")
_PYTHON_METHODS = "abs add and floordiv invert matmul mod mul neg or pow sub".split()
"""Methods that Python calls for its own signs, such as `__matmul__`."""


def load_for_all() -> None:
    """Load what fake tensors need, once, before children are forked."""
    torch.set_num_threads(1)
    with FakeTensorMode(), torch.no_grad():
        torch.nn.Linear(8, 8)(torch.randn(2, 8)).softmax(-1).sum()


class Names:
    """The names that a task has called so far, such as `torch.nn.Linear` or `torch.Tensor.sum`."""

    def __init__(self, task: Path) -> None:
        self.seen: set[str] = set()
        self._callers = (str(task), torch.nn.modules.container.__file__)

    def watch(self) -> None:
        """Replace everything whose call is to be noted, for the rest of this process."""
        for space in _NAMESPACES:
            module = sys.modules[space]
            for name, function in list(vars(module).items()):
                if not name.startswith("_") and _is_function(function):
                    setattr(module, name, self._noting(f"{space}.{name}", function))
        for name, method in _methods():
            setattr(torch.Tensor, name, self._noting(f"torch.Tensor.{name.strip('_')}", method))
        call = torch.nn.Module.__call__

        def noting_call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self._counts(sys._getframe(1)):
                self.seen.update(_names_of(type(module)))
            return call(module, *args, **kwargs)

        torch.nn.Module.__call__ = noting_call  # type: ignore[method-assign]

    def _noting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function, updated=())
        def noting(*args: Any, **kwargs: Any) -> Any:
            if self._counts(sys._getframe(1)):
                self.seen.add(name)
            return function(*args, **kwargs)

        return noting

    def _counts(self, caller: types.FrameType) -> bool:
        """Whether the task calls, or a container of its modules, and not torch's own text below them."""
        return caller.f_code.co_filename in self._callers


def _names_of(kind: type) -> Iterator[str]:
    """Yield the names of a class and of those above it, up to torch's own."""
    for each in kind.__mro__:
        if each.__module__.startswith("torch."):
            yield f"torch.nn.{each.__name__}"
            return
        yield each.__name__


def _is_function(value: Any) -> bool:
    return isinstance(value, types.FunctionType | types.BuiltinFunctionType)


def _methods() -> Iterator[tuple[str, Any]]:
    """Yield the methods of a tensor that may stand for an operator; properties and constructors stay."""
    for name in dir(torch.Tensor):
        bare = name.removeprefix("__").removesuffix("__").removeprefix("r")
        method = inspect.getattr_static(torch.Tensor, name)
        named = not name.startswith("_") or bare in _PYTHON_METHODS
        if named and callable(method) and not isinstance(method, classmethod | staticmethod):
            yield name, method


def names_called(code: str) -> list[str]:
    """Run a task once, in this process, and return what it called, sorted."""
    path = Path(tempfile.mkdtemp()) / "task.py"
    path.write_text(code, encoding="utf-8")
    try:
        return _run(code, path, fake=True)
    except Exception:  # an operator without a fake form, or a value that only a real tensor has: once more
        return _run(code, path, fake=False)


def _run(code: str, path: Path, *, fake: bool) -> list[str]:
    names = Names(path)
    task: dict[str, Any] = {"__name__": "task", "__file__": str(path)}
    with FakeTensorMode(allow_non_fake_inputs=True) if fake else torch.no_grad(), torch.no_grad():
        exec(compile(code, str(path), "exec"), task)
        model = task["Model"](*task["get_init_inputs"]()).eval()
        inputs = task["get_inputs"]()
        names.watch()
        model(*inputs)
    return sorted(names.seen)
