"""What a plan may say of one operator: a few values for some arguments, and the call that they make."""

import itertools
import json
import re
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType

from composer.plan import RUNNING, Argument, Size, Step, Value
from ops_crawler.operator import Operator

Choice = int | float | bool | str
Axes = Sequence[Argument]
"""Sizes of the running value's axes: a named one or a number."""

SECOND = "second"
"""Argument of an operator of two tensors: which operand the further input is."""

CHOICES: Mapping[str, Sequence[Choice]] = MappingProxyType(
    {
        "out_channels": (64, 32, 96, 128),
        "out_features": (512, 256, 768, 1024),
        "kernel_size": (3, 2, 5),
        "padding": (0, 1),
        "groups": (1, 2, 4),
        "num_groups": (8, 4, 2),
        "bias": (True, False),
        "dim": (-1, 1),
        "keepdim": (True, False),
        "negative_slope": (0.1, 0.01, 0.3),
        "alpha": (1.0, 0.5, 1.5),
        "beta": (1.0, 0.5, 2.0),
        "lambd": (0.5, 0.25, 1.0),
        "approximate": ("none", "tanh"),
        "output_size": (8, 4),
        "upscale_factor": (2,),
        "downscale_factor": (2,),
        "size": (5, 3),
        "norm_type": (2, 3),
    }
)
"""Values by name of the parameter. The first one is taken where the chosen ones do not work together."""

_AXES: Mapping[str, int] = MappingProxyType(
    {
        "in_channels": 1,
        "num_channels": 1,
        "num_features": 1,
        "in_features": -1,
        "normalized_shape": -1,
    }
)
"""Parameters that must equal the size of an axis; a plan has no say in them."""

_NAMED = {"out_channels": "OUT_CHANNELS", "out_features": "OUT_FEATURES"}
_UNFIT = re.compile(r"3d$|prod$|polynomial")
"""Would take a batch of images for one volume; vanish or grow beyond all bounds."""
_OFFERED_IF_OPTIONAL = frozenset(
    "bias groups padding approximate negative_slope alpha beta lambd dim".split()
)
_OF_KIND = MappingProxyType({"reduction": ("dim", "keepdim"), "scan": ("dim",)})
"""Arguments of functions whose signature the library does not tell."""
_KINDS = frozenset("activation convolution elementwise normalization pooling reduction scan".split())


def choices(operator: Operator) -> Mapping[str, Sequence[Choice]] | None:
    """Return the arguments that a plan may choose, None for an operator that no plan can use."""
    if operator.set_aside or operator.usage or operator.witness is None:
        return None
    if operator.category not in _KINDS and operator.name != "torch.nn.Linear":
        return None
    if _UNFIT.search(operator.name):
        return None
    call = json.loads(operator.witness.call)
    arguments = [*call["args"], *call["kwargs"].values()]
    tensors = [argument for argument in arguments if _is_float_tensor(argument)]
    if operator.kind == "module":
        required = [one.name for one in operator.parameters if one.required]
        if len(arguments) != 1 or not tensors:
            return None
    else:
        required = [one.name for one in operator.parameters if one.required][len(tensors) :]
        if operator.signature == "unknown":
            required = list(_OF_KIND.get(operator.category, ()))
        if not 1 <= len(tensors) <= 2 or (not required and len(tensors) != len(call["args"])):
            return None
    if any(name not in CHOICES and name not in _AXES for name in required):
        return None
    optional = {one.name for one in operator.parameters if not one.required} & _OFFERED_IF_OPTIONAL
    offered = [*(name for name in required if name in CHOICES), *sorted(optional - set(required))]
    found = {name: CHOICES[name] for name in offered}
    return {**found, SECOND: ("second", "first")} if len(tensors) == 2 else found


def step_of(
    operator: Operator, chosen: Mapping[str, Choice], axes: Axes, names: Mapping[str, str], other: str | None
) -> Step:
    """Return the call with the chosen arguments on a value with these axes; `other` is the further input.

    `names` holds the constants for some of the arguments. Raises IndexError where the value has too few axes.
    """
    arguments: dict[str, Argument] = {
        one.name: axes[_AXES[one.name]] for one in operator.parameters if one.required and one.name in _AXES
    }
    for name, value in chosen.items():
        if name != SECOND:
            arguments[name] = Size(names[name]) if name in names else value
    if operator.kind == "module":
        return Step(operator=operator.name, kind="module", args=(), kwargs=tuple(arguments.items()))
    tensors = [Value(RUNNING), *([Value(other)] if other else [])]
    if chosen.get(SECOND) == "first":
        tensors.reverse()
    return Step(operator=operator.name, kind="function", args=tuple(tensors), kwargs=tuple(arguments.items()))


def constants(chosen: Mapping[str, Choice], taken: Container[str]) -> dict[str, str]:
    """Return names for those arguments that become constants of the module, such as `OUT_CHANNELS`."""
    names = {}
    for argument in chosen.keys() & _NAMED.keys():
        name = _NAMED[argument]
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        names[argument] = name if name not in taken else next(one for one in numbered if one not in taken)
    return names


def reads_two(operator: Operator) -> bool:
    """Whether the operator works on two tensors."""
    return SECOND in (choices(operator) or ())


def _is_float_tensor(argument: object) -> bool:
    return isinstance(argument, dict) and argument.get("dtype") == "float32" and "tensor" in argument
