"""Follows `Model.forward` through the syntax tree and notes which operators it calls, in order.

Nothing is executed: of a value only what `values` describes is known. Where a condition is unknown both
branches count, where the length of a loop is unknown its body counts once. Conditions on constants and on
`self.training` (False: tasks run in eval mode) are decided, loops over lists and constant ranges are
unrolled. Arguments come from `get_init_inputs` and `get_inputs`.
"""

import ast
from collections.abc import Sequence

from composer.source_names import ModuleNames, UnreadableCodeError
from filters.similarity import library
from filters.similarity.callables import Callables, Returned, Variables
from filters.similarity.values import (
    TENSOR,
    UNKNOWN,
    Call,
    Constant,
    Function,
    Instance,
    Items,
    Parent,
    Value,
    one_of,
)


def calls_of_task(names: ModuleNames) -> list[Call]:
    """Return the library calls of `Model.forward`, in order; none where there is no class `Model`.

    Raises `UnreadableCodeError` where the code is nested too deeply or calls too much.
    """
    interpreter = _Interpreter(names)
    try:
        model = interpreter.variable("Model", {})
        if not isinstance(model, Function) or not isinstance(model.node, ast.ClassDef):
            return []
        init = interpreter.call(interpreter.variable("get_init_inputs", {}), [], {})
        instance = interpreter.call(model, init.values if isinstance(init, Items) else [], {})
        inputs = interpreter.call(interpreter.variable("get_inputs", {}), [], {})
        interpreter.calls.clear()
        interpreter.call(instance, inputs.values if isinstance(inputs, Items) else None, {})
    except RecursionError as error:
        raise UnreadableCodeError("the code is nested too deeply to be analysed") from error
    return interpreter.calls


class _Interpreter(Callables):
    def block(self, statements: Sequence[ast.stmt], variables: Variables) -> Returned:
        """Follow statements until one surely returns."""
        returned = Returned()
        for statement in statements:
            result = self.statement(statement, variables)
            returned = Returned(returned.values + result.values, result.surely)
            if result.surely:
                break
        return returned

    def statement(self, node: ast.stmt, variables: Variables) -> Returned:
        match node:
            case ast.Return(value=value):
                return Returned([self.value(value, variables) if value else Constant(None)], True)
            case ast.Raise():
                return Returned([], True)
            case ast.If(test=test, body=body, orelse=orelse):
                return self.branches(self.value(test, variables), body, orelse, variables)
            case ast.For(target=target, iter=iterable, body=body):
                results = []
                for turn in self.turns(self.value(iterable, variables)):
                    self.assign(target, turn, variables)
                    results += self.block(body, variables).values
                return Returned(results)
            case ast.While(test=test, body=body):
                self.value(test, variables)
                return Returned(self.block(body, variables).values)
            case ast.With(items=items, body=body):
                for item in items:
                    self.value(item.context_expr, variables)
                return self.block(body, variables)
            case ast.Try(body=body, orelse=orelse, finalbody=final):
                return self.block([*body, *orelse, *final], variables)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                variables[name] = Function(node, variables)
            case ast.Assign(targets=targets, value=value):
                result = self.value(value, variables)
                for target in targets:
                    self.assign(target, result, variables)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.value(value, variables), variables)
            case ast.AugAssign(target=target, op=op, value=value):
                before = self.value(target, variables)
                self.assign(target, self.operation(op, [before, self.value(value, variables)]), variables)
            case ast.Expr(value=value):
                self.value(value, variables)
        return Returned()

    def branches(
        self, test: Value, body: list[ast.stmt], orelse: list[ast.stmt], variables: Variables
    ) -> Returned:
        if isinstance(test, Constant):
            return self.block(body if test.value else orelse, variables)
        left, right = self.block(body, variables), self.block(orelse, variables)
        return Returned(left.values + right.values, left.surely and right.surely)

    def turns(self, iterable: Value) -> list[Value]:
        """Return the values that a loop takes, one unknown or tensor where they are not known."""
        if isinstance(iterable, Items):
            return list(iterable.keys or iterable.values)[: library.LONGEST]
        return [TENSOR if iterable == TENSOR else UNKNOWN]

    def assign(self, target: ast.expr, value: Value, variables: Variables) -> None:
        match target:
            case ast.Name(id=name):
                variables[name] = value
            case ast.Attribute(value=owner, attr=name):
                instance = self.value(owner, variables)
                if isinstance(instance, Instance):
                    instance.attributes[name] = value
            case ast.Subscript(value=owner):
                container = self.value(owner, variables)
                if isinstance(container, Items):
                    container.values.append(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                known = value.values if isinstance(value, Items) and len(value.values) == len(parts) else None
                for position, part in enumerate(parts):
                    self.assign(part, known[position] if known else library.item(value, UNKNOWN), variables)
            case ast.Starred(value=part):
                self.assign(part, Items([value]), variables)

    def value(self, node: ast.expr, variables: Variables) -> Value:
        """Return what is known of an expression's value, its calls noted on the way."""
        self.count_step()
        match node:
            case ast.Constant(value=value):
                return Constant(value)
            case ast.Name(id=name):
                return self.variable(name, variables)
            case ast.Attribute(value=owner, attr=name):
                return self.attribute(self.value(owner, variables), name)
            case ast.Call():
                return self.called(node, variables)
            case ast.BinOp(left=left, op=op, right=right):
                return self.operation(op, [self.value(left, variables), self.value(right, variables)])
            case ast.UnaryOp(op=op, operand=operand):
                return self.operation(op, [self.value(operand, variables)])
            case ast.Compare(left=left, ops=comparisons, comparators=comparators):
                compared = self.values([left, *comparators], variables)
                pairs = zip(comparisons, compared, compared[1:], strict=False)
                return one_of([self.operation(comparison, [a, b]) for comparison, a, b in pairs])
            case ast.Subscript(value=owner, slice=index):
                container = self.value(owner, variables)
                return library.item(container, self.value(index, variables))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return Items(self.values(parts, variables))
            case ast.Dict(keys=keys, values=parts):
                names = [self.value(key, variables) if key else UNKNOWN for key in keys]
                return Items(self.values(parts, variables), names)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                known = self.value(test, variables)
                if isinstance(known, Constant):
                    return self.value(body if known.value else orelse, variables)
                return one_of([self.value(body, variables), self.value(orelse, variables)])
            case ast.BoolOp(op=op, values=parts):
                return library.decided(type(op).__name__, self.values(parts, variables))
            case ast.NamedExpr(target=target, value=part):
                result = self.value(part, variables)
                self.assign(target, result, variables)
                return result
            case ast.Lambda():
                return Function(node, variables)
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part) | ast.SetComp(elt=part):
                return Items(self.comprehension(node.generators, part, dict(variables)))
            case ast.DictComp(value=part):
                return Items(self.comprehension(node.generators, part, dict(variables)))
            case ast.JoinedStr(values=parts):
                texts = [t.value for t in self.values(parts, variables) if isinstance(t, Constant)]
                return Constant("".join(map(str, texts))[:99]) if len(texts) == len(parts) else UNKNOWN
            case ast.FormattedValue(value=part) | ast.Starred(value=part) | ast.Await(value=part):
                return self.value(part, variables)
        return UNKNOWN

    def values(self, nodes: Sequence[ast.expr], variables: Variables) -> list[Value]:
        """Return the values of list members or arguments, starred ones spread out."""
        values: list[Value] = []
        for node in nodes:
            value = self.value(node, variables)
            spread = isinstance(node, ast.Starred) and isinstance(value, Items)
            values += value.values if spread and isinstance(value, Items) else [value]
        return values[: library.LONGEST]

    def called(self, node: ast.Call, variables: Variables) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            match variables.get("__self__"), variables.get("__class__"):
                case Instance() as instance, Function(node=ast.ClassDef() as cls):
                    return Parent(instance, cls)
            return UNKNOWN
        callee = self.value(node.func, variables)
        arguments = self.values(node.args, variables)
        keywords = {word.arg: self.value(word.value, variables) for word in node.keywords if word.arg}
        return self.call(callee, arguments, keywords)

    def operation(self, op: ast.AST, operands: list[Value]) -> Value:
        """Return the result of an operator of Python; note it where a tensor takes part."""
        return library.operation(type(op).__name__, operands, self.calls)

    def comprehension(
        self, generators: Sequence[ast.comprehension], part: ast.expr, variables: Variables
    ) -> list[Value]:
        if not generators:
            return [self.value(part, variables)]
        results: list[Value] = []
        for turn in self.turns(self.value(generators[0].iter, variables)):
            self.assign(generators[0].target, turn, variables)
            results += self.comprehension(generators[1:], part, variables)
        return results
