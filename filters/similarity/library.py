"""What the interpreter knows of torch and of Python's builtins."""

import operator
from typing import Any

from filters.operators import PROPERTIES, QUESTIONS, canonical_name
from filters.similarity.values import (
    TENSOR,
    UNKNOWN,
    Call,
    Constant,
    Instance,
    Items,
    Layer,
    Library,
    Method,
    Value,
    has_tensor,
    one_of,
)

LONGEST = 256
"""Members of a list, and turns of a loop, that are followed one by one."""
_LARGEST = 1e12
"""Numbers beyond it are not calculated with."""

CALLS_ITS_ARGUMENT = frozenset({"torch.utils.checkpoint.checkpoint", "builtins.map"})
_KEEPS_ITS_ARGUMENT = ("torch.nn.utils.", "torch.jit.", "torch.compile", "torch.nn.modules.utils.", "copy.")
_PASSES_ON = frozenset(
    f"builtins.{name}" for name in ("list", "tuple", "reversed", "iter", "sorted", "next", "set", "dict")
) | {"collections.OrderedDict"}
_LISTS = frozenset(
    {"torch.nn.ModuleList", "torch.nn.ParameterList", "torch.nn.ModuleDict", "torch.nn.ParameterDict"}
)
_TENSOR_MAKERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"})
_TENSOR_QUESTIONS = QUESTIONS | {
    "shape", "dtype", "device", "ndim", "is_cuda", "itemsize", "nbytes", "layout", "requires_grad", "names",
}  # fmt: skip
_SPECIAL_FORMS = {"abs": "torch.Tensor.__abs__", "pow": "torch.Tensor.__pow__", "sum": "torch.Tensor.__add__"}
_OPERATIONS: dict[str, tuple[str, Any]] = {
    "Add": ("add", operator.add),
    "Sub": ("sub", operator.sub),
    "Mult": ("mul", operator.mul),
    "Div": ("truediv", operator.truediv),
    "FloorDiv": ("floordiv", operator.floordiv),
    "Mod": ("mod", operator.mod),
    "Pow": ("pow", None),
    "MatMult": ("matmul", None),
    "BitAnd": ("and", None),
    "BitOr": ("or", None),
    "BitXor": ("xor", None),
    "LShift": ("lshift", None),
    "RShift": ("rshift", None),
    "Eq": ("eq", operator.eq),
    "NotEq": ("ne", operator.ne),
    "Lt": ("lt", operator.lt),
    "LtE": ("le", operator.le),
    "Gt": ("gt", operator.gt),
    "GtE": ("ge", operator.ge),
    "USub": ("neg", operator.neg),
    "UAdd": ("pos", operator.pos),
    "Invert": ("invert", None),
}
"""Operators of Python by their syntax node: the tensor's method, and what they give for known numbers."""


def attribute(owner: Value, name: str, calls: list[Call]) -> Value:
    """Return an attribute of a library path, a tensor, a layer or a list; note views such as `x.T`."""
    match owner:
        case Library(path=path):
            return Library(f"{path}.{name}")
        case Layer(path=path) if name in ("weight", "bias", "in_proj_weight", "running_mean", "running_var"):
            return TENSOR
        case Items(keys=keys) if Constant(name) in keys:
            return item(owner, Constant(name))
        case Layer() | Items():
            return Method(owner, name)
        case _ if owner == TENSOR:
            if f"torch.Tensor.{name}" in PROPERTIES:
                calls.append(Call(f"torch.Tensor.{name}.__get__", arguments=(owner,)))
                return TENSOR
            if name in ("data", "values", "indices"):
                return TENSOR
            return UNKNOWN if name in _TENSOR_QUESTIONS - QUESTIONS else Method(owner, name)
    return Method(UNKNOWN, name)


def inherited(instance: Instance, path: str, name: str) -> Value:
    """Return what an object of a local class has from a library class such as `torch.nn.Linear`."""
    if name == "training":
        return Constant(False)
    module = canonical_name(path)
    if module is not None and module != "torch.nn.Module":
        if name in ("forward", "__call__"):
            return Layer(module)
        if name in ("weight", "bias"):
            return TENSOR
    return Method(instance, name)


def module_method(instance: Instance, name: str, arguments: list[Value]) -> Value:
    """Call a method that a local class has from `torch.nn.Module`."""
    match name, arguments:
        case "register_buffer" | "register_parameter" | "add_module" | "register_module" | "__setattr__", [
            Constant(value=str() as attribute_name),
            value,
            *_,
        ]:
            instance.attributes[attribute_name] = value
    return UNKNOWN


def item(container: Value, index: Value) -> Value:
    """Return a member of a container."""
    if container == TENSOR:
        return TENSOR
    if not isinstance(container, Items) or not container.values:
        return UNKNOWN
    if isinstance(index, Constant) and index.value in [
        key.value for key in container.keys if isinstance(key, Constant)
    ]:
        return container.values[container.keys.index(index)]
    if (
        isinstance(index, Constant)
        and isinstance(index.value, int)
        and -len(container.values) <= index.value < len(container.values)
    ):
        return container.values[index.value]
    return container.values[0]


def operation(name: str, operands: list[Value], calls: list[Call]) -> Value:
    """Return the result of an operator of Python; note it where a tensor takes part."""
    if name == "Not":
        return Constant(not operands[0].value) if isinstance(operands[0], Constant) else UNKNOWN
    if name in ("Is", "IsNot"):
        left, right = operands
        if isinstance(right, Constant) and right.value is None and left != UNKNOWN:
            is_none = isinstance(left, Constant) and left.value is None
            return Constant(is_none == (name == "Is"))
        return UNKNOWN
    if name not in _OPERATIONS:
        return UNKNOWN
    method, on_numbers = _OPERATIONS[name]
    if any(operand == TENSOR for operand in operands):
        calls.append(Call(f"torch.Tensor.__{method}__", arguments=tuple(operands)))
        return TENSOR
    if name == "Add" and isinstance(operands[0], Items) and isinstance(operands[1], Items):
        return Items((operands[0].values + operands[1].values)[:LONGEST])
    if name == "Mult" and isinstance(operands[0], Items):
        return _repeated(operands[0], operands[1])
    known = [operand.value for operand in operands if isinstance(operand, Constant)]
    numbers = all(isinstance(value, int | float) and abs(value) < _LARGEST for value in known)
    comparable = name in ("Eq", "NotEq") and all(isinstance(value, str) for value in known)
    if on_numbers is None or len(known) < len(operands) or not (numbers or comparable):
        return UNKNOWN
    try:
        return Constant(on_numbers(*known))
    except ArithmeticError:
        return UNKNOWN


def decided(name: str, operands: list[Value]) -> Value:
    """Return the result of `and` or `or`."""
    known = [operand.value for operand in operands if isinstance(operand, Constant)]
    deciding = [value for value in known if bool(value) == (name == "Or")]
    if deciding:
        return Constant(deciding[0])
    return operands[-1] if len(known) == len(operands) else one_of(operands)


def _repeated(items: Items, times: Value) -> Items:
    if not isinstance(times, Constant) or not isinstance(times.value, int):
        return items
    return Items(items.values * min(max(times.value, 0), LONGEST // max(len(items.values), 1)))


def call(callee: Value, arguments: list[Value], keywords: dict[str, Value], calls: list[Call]) -> Value:
    """Return the result of a call of something that the code does not define; note it where it is torch's."""
    match callee:
        case Layer(path=path):
            calls.append(Call(path, callee, tuple(arguments), keywords))
            return TENSOR
        case Method(owner=Layer(path=path) as layer) if has_tensor(arguments):  # such as `log_prob`
            calls.append(Call(path, layer, tuple(arguments), keywords))
            return TENSOR
        case Method(owner=Items() as items, name=name):
            return _list_method(items, name, arguments)
        case Method(owner=owner, name=name):
            path = f"torch.Tensor.{name}"
            if owner == TENSOR or (owner == UNKNOWN and has_tensor(arguments) and canonical_name(path)):
                calls.append(Call(path, None, (owner, *arguments), keywords))
            elif not has_tensor(arguments):
                return UNKNOWN
            return UNKNOWN if name in QUESTIONS else TENSOR
        case Library(path=path) if path.startswith("builtins."):
            return _builtin(path, arguments, keywords, calls)
        case Library(path=path):
            return _torch(path, arguments, keywords, calls)
    return TENSOR if has_tensor([*arguments, *keywords.values()]) else UNKNOWN


def _list_method(items: Items, name: str, arguments: list[Value]) -> Value:
    match name, arguments:
        case "append" | "add", [value]:
            items.values.append(value)
        case "insert", [_, value]:
            items.values.insert(0, value)
        case "add_module", [_, value]:
            items.values.append(value)
        case "extend", [Items(values=values)]:
            items.values += values[: max(LONGEST - len(items.values), 0)]
        case "items", []:
            keys = items.keys or [UNKNOWN] * len(items.values)
            return Items([Items([key, value]) for key, value in zip(keys, items.values, strict=False)])
        case "keys", []:
            return Items(list(items.keys))
        case "values" | "copy" | "children", []:
            return Items(list(items.values))
        case "pop", _:
            return items.values[-1] if items.values else UNKNOWN
        case "get", [key, *_]:
            return item(items, key)
    return UNKNOWN


def _builtin(path: str, arguments: list[Value], keywords: dict[str, Value], calls: list[Call]) -> Value:
    name = path.removeprefix("builtins.")
    match name, arguments:
        case (("abs" | "pow" | "sum"), [first, *_]) if has_tensor([first]):
            calls.append(Call(_SPECIAL_FORMS[name], arguments=tuple(arguments)))
            return TENSOR
        case "range", [*bounds] if bounds and all(
            isinstance(b, Constant) and type(b.value) is int for b in bounds
        ):
            numbers = [bound.value for bound in bounds if isinstance(bound, Constant)]
            if len(numbers) == 3 and numbers[2] == 0:
                return UNKNOWN
            return Items([Constant(turn) for turn in range(*numbers[:3])[:LONGEST]])
        case "enumerate", [Items(values=values), *_]:
            return Items([Items([Constant(place), value]) for place, value in enumerate(values)])
        case "enumerate", [value, *_]:
            return Items([Items([UNKNOWN, value])])
        case "zip", [*lists] if lists and all(isinstance(part, Items) for part in lists):
            return Items(
                [
                    Items(list(row))
                    for row in zip(*[part.values for part in lists if isinstance(part, Items)], strict=False)
                ]
            )
        case "zip", [*lists]:
            return Items([Items([item(part, UNKNOWN) for part in lists])])
        case "len", [Items(values=values)]:
            return Constant(len(values))
        case (("getattr" | "hasattr"), _):
            return UNKNOWN
        case (("int" | "float" | "bool" | "str"), [Constant() as value]):
            return value
        case (("isinstance" | "int" | "float" | "bool" | "str" | "len" | "print" | "type"), _):
            return UNKNOWN
        case (("max" | "min"), _) if has_tensor(arguments):
            return TENSOR
    if path in _PASSES_ON:
        return arguments[0] if arguments else Items(list(keywords.values()), [Constant(k) for k in keywords])
    return TENSOR if has_tensor(arguments) else UNKNOWN


def _torch(path: str, arguments: list[Value], keywords: dict[str, Value], calls: list[Call]) -> Value:
    if path in _PASSES_ON:
        return arguments[0] if arguments else Items([])
    if path in _TENSOR_MAKERS:
        return TENSOR
    if path.startswith(_KEEPS_ITS_ARGUMENT):
        return arguments[0] if arguments else UNKNOWN
    if path in _LISTS:
        return arguments[0] if arguments and isinstance(arguments[0], Items) else Items(arguments)
    if path == "torch.nn.Sequential":
        members = (
            arguments[0].values if len(arguments) == 1 and isinstance(arguments[0], Items) else arguments
        )
        return Items(list(members), is_chain=True)
    name = canonical_name(path)
    if name is None:
        known = path.startswith("torch.") and path.rpartition(".")[2] not in (
            "no_grad",
            "device",
            "Size",
            "Generator",
        )
        return TENSOR if known and has_tensor(arguments) else UNKNOWN
    if name.startswith("torch.nn.") and not name.startswith("torch.nn.functional."):
        return Layer(name)
    calls.append(Call(path, None, tuple(arguments), keywords))
    return UNKNOWN if name.rpartition(".")[2] in QUESTIONS else TENSOR
