"""Kernels of vector functions are chosen before the fork, by a process that stays without threads."""

import subprocess
import sys

from torch.utils._python_dispatch import TorchDispatchMode

from filters.worker.vector_math import choose_kernels

THREADS = """
import os, torch
from filters.worker.vector_math import choose_kernels
before = os.listdir("/proc/self/task")
choose_kernels()
print(before == os.listdir("/proc/self/task"))
"""


class Called(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.functions = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.functions.add(
            (str(func), *(argument.dtype.itemsize for argument in args if hasattr(argument, "dtype")))
        )
        return func(*args, **(kwargs or {}))


def test_the_functions_are_called_in_both_precisions():
    with Called() as called:
        choose_kernels()
    assert {("aten.exp.default", 4), ("aten.exp.default", 8), ("aten.tanh.default", 4)} <= called.functions


def test_no_thread_is_left_behind():
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
