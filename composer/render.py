"""Write a plan as the module that users read: `Model`, constants, `get_inputs`, `get_init_inputs`."""

import re
from collections.abc import Iterator, Sequence

from composer.input_draws import drawn_text
from composer.plan import RUNNING, Argument, Dtype, Plan, Size, Step, Term, Value
from ops_crawler.own_code import parts

_PREFIXES = (("torch.nn.functional.", "F."), ("torch.nn.", "nn."), ("torch.", "torch."))
"""How the longest known namespace of an operator is spelled."""
_LINE_MAX = 100


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
            step = plan.steps[number]
            yield from _assigned(f"self.{attribute}", _called(step), _listed(step.args, step.kwargs))
        yield ""
    yield f"    def forward({', '.join(['self', *(tensor.name for tensor in plan.inputs)])}):"
    for number, step in enumerate(plan.steps):
        yield from _computed(step, attributes.get(number))
    yield f"        return {plan.steps[-1].target}"


def _constants(plan: Plan) -> Iterator[str]:
    for name, size in plan.sizes.items():
        yield f"{name} = {size}"


def _inputs(plan: Plan) -> Iterator[str]:
    yield "def get_inputs():"
    tensors = [drawn_text(tensor) for tensor in plan.inputs]
    if len(tensors) == 1:
        yield f"    return [{tensors[0]}]"
        return
    yield "    return ["
    yield from (f"        {tensor}," for tensor in tensors)
    yield "    ]"


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
    name = re.sub("P?ReLU|SiLU", lambda found: found.group().capitalize(), name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})", "_", name).lower()


def _computed(step: Step, attribute: str | None) -> Iterator[str]:
    """Write what forward computes in this step."""
    if not step.operator:
        yield f"        {step.target} = {_argument(step.args[0], step.source)}"
    elif attribute:
        fed = _listed(step.fed, step.fed_kwargs, step.source)
        yield from _assigned(step.target, f"self.{attribute}", fed, step.suffix)
    else:
        arguments = _listed(step.args, step.kwargs, step.source)
        yield from _assigned(step.target, _called(step), arguments, step.suffix)


def _assigned(target: str, called: str, arguments: list[str], suffix: str = "") -> Iterator[str]:
    """Write `target = called(arguments)suffix`, over several lines where one would be too long."""
    inside = ", ".join(arguments)
    line = f"        {target} = {called}({inside}){suffix}"
    if len(line) <= _LINE_MAX:
        yield line
        return
    yield f"        {target} = {called}("
    fits = len(inside) <= _LINE_MAX - 12
    yield from [f"            {inside}"] if fits else [f"            {argument}," for argument in arguments]
    yield f"        ){suffix}"


def _listed(
    args: Sequence[Argument], kwargs: Sequence[tuple[str, Argument]], source: str | None = None
) -> list[str]:
    positional = [_argument(argument, source) for argument in args]
    return positional + [f"{name}={_argument(argument, source)}" for name, argument in kwargs]


def _called(step: Step) -> str:
    return step.usage.name if step.usage else _spelled(step.operator)


def _spelled(operator: str) -> str:
    """`torch.nn.functional.gelu` is written `F.gelu`."""
    for namespace, prefix in _PREFIXES:
        if operator.startswith(namespace):
            return prefix + operator.removeprefix(namespace)
    raise ValueError(f"{operator} is in no namespace that a layer imports")


def _argument(argument: Argument, source: str | None) -> str:
    """Write an argument: of a constructor without `source`, else of forward, where that is what it reads."""
    match argument:
        case Size(name) if source is None:
            return name.lower()
        case Size(name):
            raise ValueError(f"{name} is used in forward, which knows only what the constructor kept")
        case Value(name):
            return source or RUNNING if name == RUNNING else name
        case Dtype(name):
            return f"torch.{name}"
        case Term(text, _, arguments):
            return text.format(*(_argument(part, source) for part in arguments))
        case tuple():
            inside = ", ".join(_argument(part, source) for part in argument)
            return f"({inside},)" if len(argument) == 1 else f"({inside})"
        case str():
            return f'"{argument}"'
        case _:
            return repr(argument)
