"""The text of a closure once its configuration is known: helpers bound, `Model` with plain parameters."""

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ops_crawler.lifting.cleaning import last_name
from ops_crawler.lifting.closures import ACTIVATIONS, Closure
from ops_crawler.lifting.folding import fold
from ops_crawler.lifting.reasons import NotLiftedError

_ACTIVATIONS_BY_KEY = {
    "gelu": "nn.GELU()", "relu": "nn.ReLU()", "silu": "nn.SiLU()", "swish": "nn.SiLU()", "tanh": "nn.Tanh()"
}  # fmt: skip
"""Keys that stand in the library's own text, such as `get_activation("gelu")`."""
_FORBIDDEN = frozenset("exec eval open input getattr setattr delattr globals locals vars id hash".split())

_UNFILLED = frozenset({"torch.empty", "torch.Tensor", "torch.FloatTensor"})
"""Constructors that take sizes; all but the first take values, too."""


@dataclass(frozen=True)
class Recorded:
    """What the text is bound to."""

    parameters: tuple[str, ...]
    """Of the constructor, in order."""
    configurations: Mapping[str, Mapping[str, str | None]]
    """Path such as `config` or `config.vision_config` to its attributes: the parameter that holds each,
    or None for an attribute that is a configuration itself."""
    written: Mapping[str, str]
    """Arguments of the constructor that the text puts together itself, as expressions."""
    absent: frozenset[str]
    """Attributes that were looked for in the configuration and are not there."""
    activation: str | None
    """Expression that makes the activation."""
    forward_parameters: tuple[str, ...]
    """The tensors of the forward, in order."""
    forward_written: Mapping[str, str]
    """Everything else that the forward was called with, as expressions."""
    forward_arguments: tuple[str, ...]
    """Names of the original forward's arguments, for classes that inherit theirs."""


def text_of(closure: Closure, recorded: Recorded) -> str:
    """Return imports and definitions; the class is called `Model`. Raises `NotLiftedError`."""
    trees = _needed_trees(closure, recorded)
    used = {part.id for tree in trees.values() for part in ast.walk(tree) if isinstance(part, ast.Name)}
    for name in sorted(used & closure.missing.keys()):
        raise closure.missing[name]
    parts = [ast.unparse(trees[name]) for _, name in closure.definitions if name in trees]
    return "\n\n\n".join([_imports(closure, recorded, used), *_configuration_classes(recorded), *parts])


def _needed_trees(closure: Closure, recorded: Recorded) -> dict[str, ast.AST]:
    """Return the class and what it still needs once helpers are bound and decided branches are gone."""
    binder, definitions = _Binder(closure, recorded), dict(closure.trees())
    found: dict[str, ast.AST] = {}
    waiting = [closure.name]
    while waiting:
        name = waiting.pop()
        if name in definitions and name not in found:
            found[name] = binder.bound(name, definitions[name])
            waiting += [part.id for part in ast.walk(found[name]) if isinstance(part, ast.Name)]
    return found


def _imports(closure: Closure, recorded: Recorded, used: Set[str]) -> str:
    wanted = {name: origin for name, origin in closure.imports.items() if name in used}
    wanted |= {"torch": ("torch", None), "nn": ("torch", "nn")}
    if recorded.configurations:
        wanted["namedtuple"] = ("collections", "namedtuple")
    plain = [f"import {module}" for name, (module, what) in wanted.items() if what is None and name == module]
    plain += [f"import {m} as {n}" for n, (m, what) in wanted.items() if what is None and n != m]
    named = [
        f"from {module} import {what}" + (f" as {name}" if name != what else "")
        for name, (module, what) in wanted.items()
        if what is not None
    ]
    return "\n".join([*sorted(plain), *sorted(named)])


def _class_name(path: str) -> str:
    return "".join(part.title().replace("_", "") for part in path.split("."))


def _configuration_classes(recorded: Recorded) -> list[str]:
    lines = [
        f"{_class_name(path)} = namedtuple({_class_name(path)!r}, {list(attributes)!r})"
        for path, attributes in recorded.configurations.items()
    ]
    return ["\n".join(lines)] if lines else []


def _configuration(path: str, recorded: Recorded) -> str:
    """Return the expression that puts a configuration together from the constructor's parameters."""
    given = [
        parameter if parameter is not None else _configuration(f"{path}.{name}", recorded)
        for name, parameter in recorded.configurations[path].items()
    ]
    return f"{_class_name(path)}({', '.join(given)})"


class _Binder(ast.NodeTransformer):
    def __init__(self, closure: Closure, recorded: Recorded) -> None:
        self.target = closure.name
        self.recorded = recorded
        self.own_names: set[str] = set()
        self.present = {name for each in recorded.configurations.values() for name in each}

    def bound(self, name: str, node: ast.AST) -> ast.AST:
        tree = ast.parse(ast.unparse(node)).body[0]
        self.own_names = set(bound_names(tree))
        tree = self.visit(tree)
        if name == self.target and isinstance(tree, ast.ClassDef):
            tree.name = "Model"
            self.constructor(tree)
            self.forward(tree)
        return ast.fix_missing_locations(fold(tree))

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id == self.target:
            return ast.Name("Model", node.ctx)
        if node.id in ACTIVATIONS or (node.id in _FORBIDDEN and node.id not in self.own_names):
            raise NotLiftedError("forbidden_python", node.id)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if ast.unparse(node.value) == "ACT2FN":
            return self.activation(_constant(node.slice))
        return self.generic_visit(node)

    def activation(self, key: str = "") -> ast.expr:
        """Return the activation of a key that stands in the text, else the one that was looked up."""
        expression = _ACTIVATIONS_BY_KEY.get(key) or self.recorded.activation or "nn.Identity()"
        return ast.parse(expression, mode="eval").body

    def visit_Call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("getattr", "hasattr") and len(node.args) >= 2 and isinstance(node.args[1], ast.Constant):
            return self.attribute(name, node)
        of_class = isinstance(node.func, ast.Subscript) and ast.unparse(node.func.value) == "ACT2CLS"
        if name == "get_activation":
            return self.activation(_constant(node.args[0]))
        if of_class and not node.args and not node.keywords:
            return self.activation()
        if last_name(node.func) == "Parameter" and node.args:
            node.args[0] = _drawn(node.args[0])
        return self.generic_visit(node)

    def attribute(self, name: str, node: ast.Call) -> Any:
        wanted = node.args[1]
        key = wanted.value if isinstance(wanted, ast.Constant) else None
        subject = self.visit(node.args[0])
        is_present, is_absent = key in self.present, key in self.recorded.absent
        if not isinstance(key, str) or not key.isidentifier() or (is_present and is_absent):
            raise NotLiftedError("forbidden_python", name)
        if name == "hasattr":
            return ast.Constant(is_present) if is_present or is_absent else node
        if is_absent and len(node.args) > 2:
            return self.visit(node.args[2])
        return ast.Attribute(subject, key, ast.Load())

    def constructor(self, tree: ast.ClassDef) -> None:
        """Give the class a constructor with plain parameters."""
        head = [
            f"{path} = {_configuration(path, self.recorded)}"
            for path in self.recorded.configurations
            if "." not in path
        ]
        head += [f"{name} = {expression}" for name, expression in self.recorded.written.items()]
        own = _method(tree, "__init__")
        if own is None:
            head.append(f"super().__init__({', '.join(self._inherited())})")
        else:
            head += [f"{name} = {empty}" for name, empty in _spare(own).items()]
        made = _function("__init__", self.recorded.parameters, head)
        if own is None:
            tree.body.insert(0, made)
        else:
            _replace(own, made)

    def _inherited(self) -> tuple[str, ...]:
        outer = [path for path in self.recorded.configurations if "." not in path]
        inner = {p for each in self.recorded.configurations.values() for p in each.values() if p}
        plain = [name for name in self.recorded.parameters if name not in inner]
        return tuple(f"{name}={name}" for name in [*outer, *plain, *self.recorded.written])

    def forward(self, tree: ast.ClassDef) -> None:
        """Give the class a forward that takes tensors alone."""
        own = _method(tree, "forward")
        written = self.recorded.forward_written
        if own is None:
            given = ", ".join(f"{name}={written.get(name, name)}" for name in self.recorded.forward_arguments)
            body = [f"return super().forward({given})"]
            tree.body.append(_function("forward", self.recorded.forward_parameters, body))
            return
        values = dict(written) | _spare(own)
        stored = {n.id for n in ast.walk(own) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        known = {
            name: ast.literal_eval(text)
            for name, text in values.items()
            if name not in stored and text in ("None", "True", "False")
        }
        own.body = fold(ast.Module(own.body, []), known).body
        read = {n.id for n in ast.walk(own) if isinstance(n, ast.Name)}
        head = [f"{name} = {text}" for name, text in values.items() if name in read]
        _replace(own, _function("forward", self.recorded.forward_parameters, head))


def _drawn(made: ast.expr) -> ast.expr:
    """Return the values of a parameter, drawn where its constructor leaves what the memory held."""
    if not isinstance(made, ast.Call) or (name := ast.unparse(made.func)) not in _UNFILLED:
        return made
    if name != "torch.empty" and any(isinstance(one, ast.List | ast.ListComp) for one in made.args):
        return made  # of values, not of sizes
    drawn = ast.Call(ast.parse("torch.randn", mode="eval").body, made.args, made.keywords)
    return ast.BinOp(ast.Constant(0.02), ast.Mult(), drawn)


def _constant(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield the parameters and variables of a definition."""
    for part in ast.walk(tree):
        if isinstance(part, ast.arg):
            yield part.arg
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id


def _method(tree: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((part for part in tree.body if isinstance(part, ast.FunctionDef) and part.name == name), None)


def _spare(own: ast.FunctionDef) -> dict[str, str]:
    """Return the names of `*args` and `**kwargs`, which are empty, with their values."""
    kinds = ((own.args.vararg, "()"), (own.args.kwarg, "{}"))
    return {argument.arg: empty for argument, empty in kinds if argument is not None}


def _function(name: str, parameters: Sequence[str], lines: Sequence[str]) -> ast.FunctionDef:
    source = f"def {name}({', '.join(['self', *parameters])}):\n    " + "\n    ".join(lines or ["pass"])
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def _replace(own: ast.FunctionDef, made: ast.FunctionDef) -> None:
    """Put the parameters and the head of `made` in front of a method's own body."""
    self_name = own.args.args[0].arg if own.args.args else "self"
    made.args.args[0].arg = self_name
    own.args = made.args
    own.decorator_list = []
    own.body = [*[part for part in made.body if not isinstance(part, ast.Pass)], *own.body]
