"""Write the frozen catalogue for the installed torch: `python -m ops_crawler.build_catalogue`.

Needs the development extra (`expecttest`, which torch's own test samples import). Calls are executed in a
child process with a time limit, because a docstring's example or a guess may hang or crash.
"""

import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import torch

from ops_crawler.catalogue import FILE, freeze
from ops_crawler.operator import Kind, Operator, Origin, Witness
from ops_crawler.torch_source import TorchSource, torch_callables
from ops_crawler.witnesses import docstrings, opinfo, search
from ops_crawler.witnesses.calls import Call
from ops_crawler.witnesses.execution import first_witness

SECONDS = 60.0
"""Limit for one operator; the first one imports torch's test samples, which takes some ten seconds."""


def main() -> None:
    """Crawl, find a witness for every operator that is not set aside, write the file."""
    operators = sorted(TorchSource().operators(), key=lambda operator: operator.name)
    wanted = [operator.name for operator in operators if operator.set_aside is None]
    found = dict(find_witnesses(wanted))
    operators = [replace(operator, witness=found.get(operator.name)) for operator in operators]
    FILE.write_bytes(freeze(operators, torch.__version__.partition("+")[0]))
    _tell(operators, wanted)


def find_witnesses(names: Iterable[str]) -> Iterator[tuple[str, Witness | None]]:
    """Yield each name with its witness; None too where the child process hung or died."""
    child = _Child()
    try:
        for name in names:
            yield name, child.witness(name)
    finally:
        child.end()


class _Child:
    """A process that looks for witnesses; it is replaced after it hung or died."""

    def __init__(self) -> None:
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def witness(self, name: str) -> Witness | None:
        if self._process is None:
            self._start()
        assert self._connection is not None
        with suppress(EOFError, OSError):
            self._connection.send(name)
            if self._connection.poll(SECONDS):
                found: Witness | None = self._connection.recv()
                return found
        print(f"{name}: no answer from the child process", file=sys.stderr)
        self.end()
        return None

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=answer, args=(other,), daemon=True)
        self._process.start()
        other.close()


def answer(connection: Connection) -> None:
    """Take names, give witnesses, until the other end is closed."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.set_warn_always(True)  # a deprecated call is refused every time, not the first time alone
    callables = {name: (kind, target) for name, kind, target in torch_callables()}
    while True:
        name = connection.recv()
        connection.send(find_witness(name, *callables[name]))


def find_witness(name: str, kind: Kind, target: Callable[..., Any]) -> Witness | None:
    """Return the witness from the first origin that has one."""
    origins: tuple[tuple[Origin, Callable[[], Iterator[Call]]], ...] = (
        ("moduleinfo" if kind == "module" else "opinfo", lambda: opinfo.calls(name, kind)),
        ("docstring", lambda: docstrings.calls(name, kind, target)),
        ("search", lambda: search.calls(kind, target)),
    )
    for origin, calls in origins:
        witness = first_witness(kind, target, calls(), origin)
        if witness is not None:
            return witness
    return None


def _tell(operators: list[Operator], wanted: list[str]) -> None:
    without = [operator.name for operator in operators if operator.name in wanted and not operator.witness]
    print(f"{len(operators)} operators, {len(wanted)} not set aside, {len(without)} of them without witness")
    print(f"without witness: {' '.join(without)}")
    print(f"{FILE.stat().st_size:,} bytes: {FILE.name}")


if __name__ == "__main__":
    main()
