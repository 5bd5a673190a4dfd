"""Builds the fingerprints of KernelBench: `python -m filters.similarity.build CHECKOUT`.

CHECKOUT is a working copy of github.com/ScalingIntelligence/KernelBench (MIT licence); nothing of its
source text goes into the file. Its tasks are imported and run once on fake tensors, which need no memory,
to see which operators they call; level 4 wants model configurations from the Hub and is only read.
"""

import argparse
import importlib.util
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from composer.source_names import parse
from filters.similarity.reference import SHIPPED, Reference, Task, save
from filters.similarity.sequences import operator_sequence
from filters.similarity.static_operators import static_signature
from filters.similarity.syntax_trees import Forest, model_class
from filters.worker.observing import OperatorTrace

LEVELS = (1, 2, 3, 4)
_EXECUTED_LEVELS = (1, 2, 3)
_SECONDS = 30
"""Limit for running one task: on fake tensors recurrent layers unroll into thousands of calls."""


def build(checkout: Path, commit: str) -> Reference:
    """Return the fingerprints of all tasks of a checkout."""
    forest = Forest()
    tasks = []
    for level in LEVELS:
        files = (checkout / "KernelBench" / f"level{level}").glob("*.py")
        for path in sorted(files, key=lambda path: int(path.name.partition("_")[0])):
            name = f"level{level}/{path.stem}"
            tasks.append(fingerprint(path, name, forest, execute=level in _EXECUTED_LEVELS))
    about = {
        "source": "https://github.com/ScalingIntelligence/KernelBench",
        "commit": commit,
        "licence": "MIT",
        "tasks": len(tasks),
        "python": ".".join(map(str, sys.version_info[:2])),
        "torch": torch.__version__.partition("+")[0],
    }
    return Reference(tuple(tasks), forest, about)


def fingerprint(path: Path, name: str, forest: Forest, *, execute: bool) -> Task:
    """Return the fingerprint of one task file."""
    code = path.read_text(encoding="utf-8")
    read = static_signature(code)
    return Task(
        name=name,
        significant=forest.plant(model_class(parse(code))).significant,
        signature=(executed_signature(path) if execute else ()) or read,
        static_signature=read,
        sequence=operator_sequence(code),
    )


def executed_signature(path: Path) -> tuple[str, ...]:
    """Run a task on fake tensors and return its signature, empty where it cannot run so."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(_SECONDS)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            task: Any = _imported(path)
            model = task.Model(*task.get_init_inputs()).eval()
            inputs = task.get_inputs()
            trace = OperatorTrace(model)
            with trace.running():
                model(*inputs)
    except Exception as error:  # whatever a task does; the file then says what its source says
        print(f"{path.stem}: not executed ({type(error).__name__})", file=sys.stderr)
        return ()
    finally:
        signal.alarm(0)
    return tuple(trace.signature)


def _give_up(signal_number: int, frame: object) -> None:
    raise TimeoutError


def _imported(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(re.sub(r"\W", "_", path.stem), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the file; returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the fingerprints of KernelBench.")
    parser.add_argument("checkout", type=Path, help="working copy of ScalingIntelligence/KernelBench")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="file to write")
    parser.add_argument("--commit", help="commit of the checkout, where it is not a git repository")
    options = parser.parse_args(arguments)
    if not (options.checkout / "KernelBench" / "level1").is_dir():
        print(
            f"opweaver: {options.checkout} is no checkout of KernelBench: no folder KernelBench/level1",
            file=sys.stderr,
        )
        return 2
    commit = options.commit or _commit(options.checkout)
    if commit is None:
        print(
            f"opweaver: {options.checkout} is no git repository; give its commit with --commit",
            file=sys.stderr,
        )
        return 2
    reference = build(options.checkout, commit)
    save(reference, options.out)
    print(f"{options.out}: {len(reference.tasks)} tasks, {options.out.stat().st_size / 1e6:.2f} MB")
    return 0


def _commit(checkout: Path) -> str | None:
    answer = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return answer.stdout.strip() if answer.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
