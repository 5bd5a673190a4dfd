"""Write a plan as the module that users read: `Model`, constants, `get_inputs`, `get_init_inputs`."""

import re
from collections.abc import Iterator

from composer.plan import RUNNING, Argument, Input, IsPositive, Plan, Size, Step, Value
from ops_crawler.own_code import parts

_PREFIXES = (("torch.nn.functional.", "F."), ("torch.nn.", "nn."), ("torch.", "torch."))
"""How the longest known namespace of an operator is spelled."""


def render(plan: Plan) -> str:
    """Return the source text of the plan."""
    own_imports, own_definitions = _own(plan)
    bodies = [*_class(plan), "", "", *_constants(plan), "", "", *_inputs(plan), "", "", *_init_inputs(plan)]
    bodies = [*own_definitions, *bodies]
    return "\n".join([*_imports(bodies, own_imports), "", "", *bodies, ""])


def _imports(bodies: list[str], own: list[str]) -> Iterator[str]:
    usual = ["import torch", "import torch.nn as nn"]
    if any("F." in line for line in bodies):
        usual.append("import torch.nn.functional as F")
    others = [line for line in own if line not in usual]
    first = [line for line in others if line.startswith("from __future__")]
    yield from [*first, *usual, *(line for line in others if line not in first)]


def _own(plan: Plan) -> tuple[list[str], list[str]]:
    """Return import lines and definitions of the user's own operators, each once."""
    imports: dict[str, None] = {}
    definitions: dict[str, None] = {}
    for step in plan.steps:
        if step.usage:
            its_imports, its_definitions = parts(step.usage.code)
            imports |= dict.fromkeys(its_imports)
            definitions |= dict.fromkeys(its_definitions.values())
    return list(imports), [line for text in definitions for line in (*text.splitlines(), "", "")]


def _class(plan: Plan) -> Iterator[str]:
    attributes = _attributes(plan)
    yield "class Model(nn.Module):"
    if attributes:
        yield f"    def __init__({', '.join(['self', *(name.lower() for name in _init_sizes(plan))])}):"
        yield "        super().__init__()"
        for number, attribute in attributes.items():
            yield f"        self.{attribute} = {_call(plan.steps[number], in_init=True)}"
        yield ""
    yield f"    def forward({', '.join(['self', *(tensor.name for tensor in plan.inputs)])}):"
    for number, step in enumerate(plan.steps):
        module_call = f"self.{attributes[number]}({RUNNING})" if number in attributes else None
        yield f"        {RUNNING} = {module_call or _call(step, in_init=False)}"
    yield f"        return {RUNNING}"


def _constants(plan: Plan) -> Iterator[str]:
    for name, size in plan.sizes.items():
        yield f"{name} = {size}"


def _inputs(plan: Plan) -> Iterator[str]:
    yield "def get_inputs():"
    tensors = [_randn(tensor) for tensor in plan.inputs]
    if len(tensors) == 1:
        yield f"    return [{tensors[0]}]"
        return
    yield "    return ["
    yield from (f"        {tensor}," for tensor in tensors)
    yield "    ]"


def _randn(tensor: Input) -> str:
    return f"torch.randn({', '.join(tensor.shape)})"


def _init_inputs(plan: Plan) -> Iterator[str]:
    yield "def get_init_inputs():"
    yield f"    return [{', '.join(_init_sizes(plan))}]"


def _init_sizes(plan: Plan) -> list[str]:
    """Sizes that the constructor needs, each once, in the order of the constants."""
    arguments = [argument for step in plan.steps for argument in step.arguments()]
    return [name for name in plan.sizes if Size(name) in arguments]


def _attributes(plan: Plan) -> dict[int, str]:
    """Attribute of `self` for every step that is a module: `Conv2d` is `conv2d`, a second one `conv2d_2`."""
    attributes: dict[int, str] = {}
    for number, step in enumerate(plan.steps):
        if step.kind == "module":
            attribute = _snake_case(step.operator.rpartition(".")[2])
            same = sum(plan.steps[earlier].operator == step.operator for earlier in attributes)
            attributes[number] = f"{attribute}_{same + 1}" if same else attribute
    return attributes


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})", "_", name).lower()


def _call(step: Step, *, in_init: bool) -> str:
    positional = [_argument(argument, in_init) for argument in step.args]
    keywords = [f"{name}={_argument(argument, in_init)}" for name, argument in step.kwargs]
    operator = step.usage.name if step.usage else _spelled(step.operator)
    return f"{operator}({', '.join(positional + keywords)})"


def _spelled(operator: str) -> str:
    """`torch.nn.functional.gelu` is written `F.gelu`."""
    for namespace, prefix in _PREFIXES:
        if operator.startswith(namespace):
            return prefix + operator.removeprefix(namespace)
    raise ValueError(f"{operator} is in no namespace that a layer imports")


def _argument(argument: Argument, in_init: bool) -> str:
    match argument:
        case Size(name) if in_init:
            return name.lower()
        case Size(name):
            raise ValueError(f"{name} is used in forward, which knows only what the constructor kept")
        case Value(name):
            return name
        case IsPositive(Value(name)):
            return f"{name} > 0"
        case str():
            return f'"{argument}"'
        case _:
            return repr(argument)
