"""The side of the extracts: run each text where transformers cannot be imported, and compare bits.

The texts are derived from the installed library by this package. They are written to files and imported in
a process of its own; no task of any other origin ever comes here.
"""

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensorMode
from torch.utils import _pytree as pytree

from ops_crawler.lifting.bits import same_bits
from ops_crawler.lifting.costs import cost_of
from ops_crawler.lifting.lifted import Input, LiftedLayer, Scale, layer_from, layer_to_dict
from ops_crawler.lifting.reasons import NotLiftedError
from ops_crawler.lifting.task_text import render
from ops_crawler.source import one_line

_BATCHES = (2, 4)
"""Batches at which the cost of a layer is taken."""
_REAL_BATCH = 2
"""Batch of the recorded inputs."""


class _NoTransformers:
    """Finds transformers nowhere."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] in ("transformers", "huggingface_hub", "tokenizers", "safetensors"):
            raise ModuleNotFoundError(f"{name} must not be needed here")
        return None


def prepare() -> None:
    """Make sure that no text can lean on the library."""
    torch.set_num_threads(1)
    sys.meta_path.insert(0, _NoTransformers())
    if "transformers" in sys.modules:
        raise RuntimeError("transformers was imported before the extracts")
    with FakeTensorMode(), torch.no_grad():  # imports what each child would import anew
        torch.nn.Linear(2, 2)(torch.randn(2, 2)).softmax(-1).sum()


def check(folder: Path) -> list[dict[str, Any]]:
    """Return, for each class that was recorded, its layer with costs or the reason why it is not lifted."""
    results = []
    for file in sorted(folder.glob("layer_*.pt")):
        one = torch.load(file, weights_only=True)
        if "layer" not in one:
            results.append(one)
            continue
        try:
            layer = _checked(one, file.with_suffix(""))
            results.append({"name": layer.name, "layer": layer_to_dict(layer)})
        except NotLiftedError as error:
            results.append({"name": one["name"], "reason": error.reason, "detail": error.detail[:200]})
    return results


def _checked(one: dict[str, Any], stem: Path) -> LiftedLayer:
    layer = layer_from(one["layer"])
    try:
        outputs = _outputs(layer, one.pop("state"), one["inputs"], stem)
    except Exception as error:
        raise NotLiftedError("extract_fails", one_line(error)) from None
    if not same_bits(one["outputs"], outputs):
        raise NotLiftedError("mismatch", f"{len(outputs)} outputs")
    layer = _drawable(layer, one["inputs"], stem)
    try:
        scales = [replace(layer.scales[0], costs=_costs(layer, layer.scales[0], stem, real=True))]
    except Exception as error:
        raise NotLiftedError("inputs", f"at another batch: {one_line(error)}") from None
    for scale in layer.scales[1:]:
        try:
            scales.append(replace(scale, costs=_costs(layer, scale, stem, real=False)))
        except Exception:
            continue
    return replace(layer, scales=tuple(scales))


def _outputs(
    layer: LiftedLayer, state: Mapping[str, Tensor], inputs: Sequence[Tensor], stem: Path
) -> list[Tensor]:
    """Return what the text gives with the original's weights and inputs."""
    task = _load(render(layer, layer.scales[0], _REAL_BATCH), stem)
    model = task.Model(*task.get_init_inputs()).eval()
    model.load_state_dict(state)
    with torch.no_grad():
        return [leaf for leaf in pytree.tree_leaves(model(*inputs)) if leaf is not None]


def _drawable(layer: LiftedLayer, values: Sequence[Tensor], stem: Path) -> LiftedLayer:
    """Return the layer with inputs that can be drawn anew; small whole numbers may have to stay."""
    small = layer.scales[0]
    fixed = tuple(_as_constant(one, value) for one, value in zip(small.inputs, values, strict=True))
    tries = [layer]
    if fixed != small.inputs and all(one.kind != "int" or not one.batch_axes for one in small.inputs):
        tries.append(replace(layer, scales=(replace(small, inputs=fixed),)))
    problem = ""
    for one in tries:
        try:
            _run_drawn(_load(render(one, one.scales[0], _REAL_BATCH), stem))
            return one
        except Exception as error:
            problem = one_line(error)
    raise NotLiftedError("inputs", problem)


def _as_constant(one: Input, value: Tensor) -> Input:
    if one.kind != "int" or value.numel() > 64:
        return one
    return replace(one, kind="constant", shape=tuple(value.shape), batch_axes=(), values=repr(value.tolist()))


def _run_drawn(task: ModuleType) -> None:
    torch.manual_seed(0)
    model = task.Model(*task.get_init_inputs()).eval()
    with torch.no_grad():
        outputs = pytree.tree_leaves(model(*task.get_inputs()))
    if not all(bool(torch.isfinite(leaf).all()) for leaf in outputs if isinstance(leaf, Tensor)):
        raise ValueError("outputs are not finite")


def _costs(layer: LiftedLayer, scale: Scale, stem: Path, real: bool) -> tuple[Any, ...]:
    costs = []
    for batch in _BATCHES:
        task = _load(render(layer, scale, batch), stem)
        if real:
            costs.append(cost_of(task, batch))
        else:
            with FakeTensorMode():
                costs.append(cost_of(task, batch))
    return tuple(costs)


def _load(text: str, stem: Path) -> ModuleType:
    """Return the text as a module."""
    file = stem.with_suffix(".py")
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(stem.name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module
