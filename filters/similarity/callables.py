"""Names, attributes and calls as the interpreter sees them."""

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from composer.source_names import Function as FunctionNode
from composer.source_names import ModuleNames, UnreadableCodeError, dotted_path
from filters.similarity import library
from filters.similarity.values import (
    TENSOR,
    UNKNOWN,
    Call,
    Constant,
    Function,
    Instance,
    Items,
    Layer,
    Library,
    Method,
    Parent,
    Value,
    one_of,
)

_STEPS_MAX = 100_000
"""Expressions looked at; code can be written to call itself exponentially often."""

Variables = dict[str, Value]


@dataclass(frozen=True, slots=True)
class Returned:
    """What statements may return, and whether they surely do."""

    values: list[Value] = field(default_factory=list)
    surely: bool = False


class Callables(ABC):
    """The part of the interpreter that finds what a name or attribute is, and enters calls."""

    def __init__(self, names: ModuleNames) -> None:
        self.names = names
        self.calls: list[Call] = []
        self.module_variables: Variables = {}
        self.steps = 0

    @abstractmethod
    def value(self, node: ast.expr, variables: Variables) -> Value:
        """Return what is known of an expression's value, its calls noted on the way."""

    @abstractmethod
    def block(self, statements: Sequence[ast.stmt], variables: Variables) -> "Returned":
        """Follow statements until one surely returns."""

    def count_step(self) -> None:
        self.steps += 1
        if self.steps > _STEPS_MAX:
            raise UnreadableCodeError("the code calls too much to be analysed")

    def variable(self, name: str, variables: Variables) -> Value:
        if name in variables:
            return variables[name]
        if name in self.module_variables:
            return self.module_variables[name]
        if name in self.names.definitions:
            self.module_variables[name] = UNKNOWN  # while it is worked out
            self.block(self.names.definitions[name], self.module_variables)
            return self.module_variables[name]
        path = self.names.imports.get(name)
        return Library(path or f"builtins.{name}")

    def attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Instance):
            return self.member(owner, name, self.line_of(owner.cls))
        if isinstance(owner, Parent):
            return self.member(owner.instance, name, self.line_of(owner.cls)[1:])
        if isinstance(owner, Function) and isinstance(owner.node, ast.ClassDef):
            return self.member(Instance(owner.node), name, self.line_of(owner.node))
        return library.attribute(owner, name, self.calls)

    def member(self, instance: Instance, name: str, line: Sequence[ast.ClassDef | str]) -> Value:
        """Return an attribute of an object, looked up along classes, local ones or paths of torch.nn."""
        if name in instance.attributes:
            return instance.attributes[name]
        for cls in line:
            if isinstance(cls, str):
                return library.inherited(instance, cls, name)
            for statement in cls.body:
                if isinstance(statement, FunctionNode) and statement.name == name:
                    method = Function(
                        statement, {"__class__": Function(cls, {}), "__self__": instance}, instance
                    )
                    is_property = any(dotted_path(d)[-1:] == ["property"] for d in statement.decorator_list)
                    return self.call(method, [], {}) if is_property else method
                if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
                    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                    if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                        return self.value(statement.value, {})
        return library.inherited(instance, "", name)

    def line_of(self, cls: ast.ClassDef) -> list[ast.ClassDef | str]:
        """Return a class and its bases, nearest first; library classes as paths."""
        line: list[ast.ClassDef | str] = [cls]
        for base in cls.bases:
            value = self.value(base, {})
            if isinstance(value, Function) and isinstance(value.node, ast.ClassDef):
                line += self.line_of(value.node)
            elif isinstance(value, Library):
                line.append(value.path)
        return line

    def call(self, callee: Value, arguments: list[Value] | None, keywords: Variables) -> Value:
        """Return the result of a call; `arguments=None` stands for tensors for what has no default."""
        self.count_step()
        match callee:
            case Function(node=ast.ClassDef() as cls):
                instance = Instance(cls)
                self.call(self.attribute(instance, "__init__"), arguments, keywords)
                return instance
            case Function():
                return self.call_function(callee, arguments, keywords)
            case Instance():
                name = (
                    "__call__"
                    if any(_defines(cls, "__call__") for cls in self.line_of(callee.cls))
                    else "forward"
                )
                return self.call(self.attribute(callee, name), arguments, keywords)
            case Items(is_chain=True):
                result = (arguments or [TENSOR])[0]
                for layer in callee.values:
                    result = self.call(layer, [result], {})
                return result
            case Method(owner=Instance() as instance, name=name):
                return library.module_method(instance, name, arguments or [])
            case Method(owner=(Layer() | Items(is_chain=True)) as layer, name="forward"):
                return self.call(layer, arguments, keywords)
            case Library(path=path) if path in library.CALLS_ITS_ARGUMENT and arguments:
                return self.call(arguments[0], arguments[1:], {})
        return library.call(callee, arguments or [], keywords, self.calls)

    def call_function(self, function: Function, arguments: list[Value] | None, keywords: Variables) -> Value:
        node = function.node
        assert isinstance(node, FunctionNode | ast.Lambda)
        variables = function.variables | self.bound(node.args, function, arguments, keywords)
        if isinstance(node, ast.Lambda):
            return self.value(node.body, variables)
        return one_of(self.block(node.body, variables).values or [Constant(None)])

    def bound(
        self, signature: ast.arguments, function: Function, arguments: list[Value] | None, keywords: Variables
    ) -> Variables:
        """Return the values of the parameters of a call."""
        names = [argument.arg for argument in signature.posonlyargs + signature.args]
        static = any(
            isinstance(d, ast.Name) and d.id == "staticmethod"
            for d in getattr(function.node, "decorator_list", [])
        )
        own: list[Value] = [function.bound_to] if function.bound_to and not static else []
        required = len(names) - len(own) - len(signature.defaults)
        given = [*own, *([TENSOR] * required if arguments is None else arguments)]
        values: Variables = dict.fromkeys(names, UNKNOWN)
        for name, default in zip(reversed(names), reversed(signature.defaults), strict=False):
            values[name] = self.value(default, {})
        for keyword, keyword_default in zip(signature.kwonlyargs, signature.kw_defaults, strict=True):
            values[keyword.arg] = self.value(keyword_default, {}) if keyword_default else UNKNOWN
        values.update(zip(names, given, strict=False))
        if signature.vararg:
            values[signature.vararg.arg] = Items(
                given[len(names) :] or ([TENSOR] if arguments is None else [])
            )
        return values | keywords


def _defines(cls: ast.ClassDef | str, name: str) -> bool:
    return isinstance(cls, ast.ClassDef) and any(getattr(member, "name", None) == name for member in cls.body)
