"""The side of the originals: run a family's models, then each of its layer classes alone.

Runs only in a process of its own, which imports transformers; what it finds goes into one file, for the
process of the extracts to be compared with.
"""

import contextlib
import gc
import importlib
import re
import signal
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ops_crawler.lifting.models import VARIANTS, build, inputs_for, model_classes
from ops_crawler.lifting.reasons import NotLiftedError
from ops_crawler.lifting.recording import Occurrence, occurrences, run
from ops_crawler.lifting.scaling import FULL, WHOLE_DEPTH, WIDTHS, Shrinking
from ops_crawler.lifting.subject import Subject
from ops_crawler.source import one_line

BATCHES = (2, 3)
"""Of the small runs; what grows with the batch is seen from their difference."""
FULL_TOKENS = 512
"""Length of token sequences at full width."""
MODEL_SECONDS = 4.0
"""Limit for building and running one model, in seconds of processor time: other load has no say."""
FAMILY_SECONDS = 12.0
"""No further model of a family is begun after this processor time."""
_OF_WIDTH = re.compile("divisible|channels|size|shape|dimension|groups|heads")
"""What the library says where a width does not fit; another width may."""
_OF_DEPTH = re.compile("index out of range|out_indices|out_features|stage")
"""What the library says where a layer is missing that was cut."""
_IDLE_MODELS = 3
"""Models in a row that show no new class before the rest is left out."""


def prepare() -> None:
    """Import what every family needs, once."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    import transformers.modeling_utils

    transformers.logging.set_verbosity_error()
    with torch.device("meta"), torch.no_grad():  # imports what each child would import anew
        torch.nn.Linear(2, 2)(torch.randn(2, 2)).softmax(-1).sum()


def record(module_name: str, names: Sequence[str], folder: Path, patience: float) -> None:
    """Write what the extract of each class is compared with, or why there is none: one file for each.

    `patience` multiplies the limits of processor time.
    """
    module = importlib.import_module(module_name)
    classes = [getattr(module, name) for name in names]
    found, full, failures = _run_models(module, classes, patience)
    for number, cls in enumerate(classes):
        name = cls.__name__
        try:
            if name not in found or len(found[name].called_with) < len(BATCHES):
                raise NotLiftedError("not_reached", failures)
            result = Subject(module_name, cls, found[name], full.get(name)).result()
        except NotLiftedError as error:
            result = {"name": name, "reason": error.reason, "detail": error.detail[:200]}
        except Exception as error:
            result = {"name": name, "reason": "original_fails", "detail": one_line(error)[:200]}
        torch.save(result, folder / f"layer_{number:03}.pt")


def _run_models(
    module: Any, classes: Sequence[type[nn.Module]], patience: float
) -> tuple[dict[str, Occurrence], dict[str, Occurrence], str]:
    """Run the module's models until all classes were met: small ones for real, full ones as shapes."""
    found: dict[str, Occurrence] = {}
    full: dict[str, Occurrence] = {}
    failure = "no model of its file calls it"
    idle = 0
    for cls in model_classes(module):
        late = time.process_time() > FAMILY_SECONDS * patience
        if len(found) == len(classes) or late or idle > _IDLE_MODELS:
            break
        met, problem = _met(cls, classes, MODEL_SECONDS * patience)
        failure = f"{cls.__name__}: {problem}" if problem else failure
        new = {name: one for name, one in met.items() if name not in found}
        found |= new
        idle = 0 if new else idle + 1
        if new:
            full |= {
                name: one
                for name, one in _at_full_width(cls, classes, MODEL_SECONDS * patience).items()
                if name in new
            }
    return found, full, failure


def _met(cls: Any, classes: Sequence[type[nn.Module]], seconds: float) -> tuple[dict[str, Occurrence], str]:
    """Return what a small model shows of the classes, and what went wrong at the last width tried."""
    best: dict[str, Occurrence] = {}
    problem = ""
    for how in WIDTHS:
        met, problem = _tried(cls, how, classes, seconds)
        best = met if len(met) > len(best) else best
        if not _OF_WIDTH.search(problem):
            break
    if _OF_DEPTH.search(problem):
        met, problem = _tried(cls, WHOLE_DEPTH, classes, seconds)
        best = met if len(met) > len(best) else best
    return best, problem


def _tried(
    cls: Any, how: Shrinking, classes: Sequence[type[nn.Module]], seconds: float
) -> tuple[dict[str, Occurrence], str]:
    """Return which classes a model calls at both batches, and what went wrong if anything."""
    with occurrences(classes) as met:
        try:
            with _time_limit(seconds):
                torch.manual_seed(0)
                problem = _runs(build(cls, how), met)
        except Exception as error:
            problem = one_line(error)
    gc.collect()  # the model, before the next one
    return {name: one for name, one in met.items() if len(one.called_with) == len(BATCHES)}, problem


def _runs(model: nn.Module, met: dict[str, Occurrence]) -> str:
    """Run a model at both batches and return what went wrong; what it reached before that counts too."""
    problem = ""
    for change in VARIANTS:
        for one in met.values():
            if len(one.called_with) < len(BATCHES):
                one.called_with.clear()
        made = (change(inputs_for(model, batch)) for batch in BATCHES)
        given = [inputs for inputs in made if inputs is not None]
        if len(given) < len(BATCHES):
            continue
        again = ""
        for number, inputs in enumerate(given):
            try:
                run(model, inputs, met, number)
            except _TooLongError:
                raise
            except Exception as error:
                again = one_line(error)
        if not again:
            return ""
        problem = problem or again
    return problem


def _at_full_width(cls: Any, classes: Sequence[type[nn.Module]], seconds: float) -> dict[str, Occurrence]:
    """Return what is known of the classes in a model of the library's widths, run without memory."""
    from transformers import masking_utils

    packed = masking_utils.find_packed_sequence_indices
    masking_utils.find_packed_sequence_indices = lambda position_ids: None  # it looks at values
    try:
        with occurrences(classes) as met, _time_limit(seconds), torch.device("meta"):
            model = build(cls, FULL)
            run(model, inputs_for(model, BATCHES[0], FULL_TOKENS), met, 0)
    except Exception:
        return {}
    finally:
        masking_utils.find_packed_sequence_indices = packed
    return dict(met)


class _TooLongError(Exception):
    """A model takes too long. Raised by the alarm inside `_time_limit`."""


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise _TooLongError(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
