"""What the text alone tells: is it a task, and may it be run at all?

The only filters that read source instead of facts. They are the first line in front of the sandbox,
not a security boundary.
"""

import ast
import symtable
import warnings
from collections.abc import Iterator, Mapping

from composer.canonical import canonical_form
from composer.source_names import UnreadableCodeError
from filters.policy import Policy
from filters.reasons import Reason
from filters.similarity import static_random_calls
from filters.verdict import Finding

_IMPORTS = frozenset("torch math typing collections dataclasses functools __future__".split())
_FORBIDDEN_MODULES = tuple(
    """torch.utils.cpp_extension torch.utils.data torch.ops torch.classes torch._C torch._dynamo
    torch._inductor torch.library torch.jit torch.multiprocessing torch.distributed torch.hub torch.package
    torch.onnx torch.export torch.profiler torch.testing torch.autograd.profiler""".split()
)
_RE_EXPORTED = frozenset(
    """builtins ctypes gc importlib inspect multiprocessing os pickle platform shutil socket subprocess sys
    tempfile threading""".split()
)
"""Modules that allowed ones have imported for themselves: `torch.os`, `collections._sys`."""
_FORBIDDEN_NAMES = frozenset(
    """exec eval compile open input __import__ getattr setattr delattr globals locals vars breakpoint exit
    quit memoryview id hash __builtins__ __loader__ __spec__""".split()
)
_PROCESS_STATE = """set_default_dtype set_default_device set_default_tensor_type set_num_threads
    set_num_interop_threads set_grad_enabled use_deterministic_algorithms seed set_rng_state
    set_float32_matmul_precision set_flush_denormal"""
_FILES_AND_MEMORY = "save load from_file data_ptr untyped_storage storage from_blob load_inline"
_COMPILER = "is_compiling is_dynamo_compiling is_scripting is_tracing compile disable graph_break"
_DEVICE = "cuda cpu pin_memory synchronize current_stream Stream"
_PYTHON = """__globals__ __builtins__ __subclasses__ __code__ __closure__ __getattribute__ __reduce__
    __loader__ __spec__ __traceback__ f_back f_builtins f_globals f_locals gi_frame tb_frame system popen"""
_FORBIDDEN_ATTRIBUTES = frozenset(
    " ".join((_PROCESS_STATE, _FILES_AND_MEMORY, _COMPILER, _DEVICE, _PYTHON)).split()
)
_OWN_ATTRIBUTES = frozenset("seed save load storage disable system Stream synchronize".split())
"""Allowed on `self`, where they are no functions of torch's."""
_UNIQUE_UP_TO_SIGN = frozenset("eig eigh svd svd_lowrank pca_lowrank qr lobpcg".split())
"""Results that are unique only up to sign or order; harmless where weights are initialised with them."""
_OUTSIDE_FORWARD = frozenset("__init__ get_inputs get_init_inputs".split())
_DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu", "meta")


def source_finding(code: str, policy: Policy) -> Finding | None:
    """Return the first objection to the text, or None if it may be executed in the sandbox."""
    size = len(code.encode("utf-8", "backslashreplace"))
    if size > policy.source_kib_max * 1024:
        return Finding(reason=Reason.TOO_LARGE, evidence={"bytes": size})
    try:
        code.encode("utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
            scopes = symtable.symtable(code, "task", "exec")
            compile(tree, "task", "exec", dont_inherit=True)  # finds what is no syntax error to the parser
    except UnicodeEncodeError as error:
        return Finding(reason=Reason.SYNTAX, evidence={"error": f"no UTF-8 at character {error.start}"})
    except (SyntaxError, ValueError) as error:
        return Finding(reason=Reason.SYNTAX, evidence={"error": str(error).splitlines()[0][:200]})
    except (RecursionError, MemoryError):
        return Finding(reason=Reason.SYNTAX, evidence={"error": "nested too deeply"})
    return contract(tree) or forbidden(tree, scopes) or random_forward(code)


def contract(tree: ast.Module) -> Finding | None:
    """Exactly one `Model`, `get_inputs` and `get_init_inputs` at module level."""
    faults = []
    for name, kind in (
        ("Model", ast.ClassDef),
        ("get_inputs", ast.FunctionDef),
        ("get_init_inputs", ast.FunctionDef),
    ):
        count = sum(isinstance(node, kind) and node.name == name for node in tree.body)
        if count != 1:
            faults.append(f"{count} definitions of {name}")
    if not faults and any(
        isinstance(n, ast.ClassDef) and n.name == "Model" and not n.bases for n in tree.body
    ):
        faults.append("Model has no base class")
    return Finding(reason=Reason.CONTRACT, evidence={"faults": faults}) if faults else None


def forbidden(tree: ast.Module, scopes: symtable.SymbolTable) -> Finding | None:
    """Imports and names by which a task could do more than compute, or be no usable reference."""
    modules = _imported(tree)
    found = {what for node in ast.walk(tree) for what in _objections(node, modules)}
    found |= _builtins_used(scopes) & _FORBIDDEN_NAMES
    found |= set(_ambiguous_results(tree, modules))
    return Finding(reason=Reason.FORBIDDEN, evidence={"found": sorted(found)[:10]}) if found else None


def random_forward(code: str) -> Finding | None:
    """Operators in forward that draw random numbers in eval mode, such as `F.dropout(x)`.

    Text that our analysis cannot follow, such as a sum of a thousand terms, is refused here: nothing
    could be said about its similarity or its repeats either.
    """
    try:
        canonical_form(code)
        calls = static_random_calls(code)
    except UnreadableCodeError as error:
        return Finding(reason=Reason.SYNTAX, evidence={"error": str(error)})
    return Finding(reason=Reason.FORBIDDEN, evidence={"random": calls}) if calls else None


def _imported(tree: ast.Module) -> dict[str, str]:
    """Return what the imported names stand for: `F` for `torch.nn.functional`, say."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):  # without `as`, `import a.b` binds only `a`
            names |= {alias.asname: alias.name for alias in node.names if alias.asname}
    return names


def _builtins_used(scopes: symtable.SymbolTable) -> set[str]:
    """Return names that are read somewhere and bound nowhere: Python's own."""
    bound = {s.get_name() for s in scopes.get_symbols() if s.is_assigned() or s.is_imported()}
    used: set[str] = set()
    tables = [scopes]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        outer = table.get_type() == "module"
        used |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (outer or s.is_global())}
    return used - bound


def _objections(node: ast.AST, modules: Mapping[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imports(node)
    elif isinstance(node, ast.Attribute):
        dotted = _path(node, modules)
        own = dotted == f"self.{node.attr}" and node.attr in _OWN_ATTRIBUTES
        if not own and _is_forbidden_path(dotted or f".{node.attr}"):
            yield ast.unparse(node) if dotted else f".{node.attr}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_device(node.value):
        yield f"device {node.value!r}"
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield f"{type(node).__name__.lower()} {', '.join(node.names)}"


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.ImportFrom):
        names = (
            [f"{node.module}.{alias.name}" for alias in node.names]
            if node.level == 0
            else ["relative import"]
        )
    else:
        names = [alias.name for alias in node.names]
    for name in names:
        if name.split(".")[0] not in _IMPORTS or _is_forbidden_path(name):
            yield f"import {name}"


def _is_forbidden_path(path: str) -> bool:
    root, *parts = path.split(".")
    if path.startswith(_FORBIDDEN_MODULES) or (parts and parts[-1] in _FORBIDDEN_ATTRIBUTES):
        return True
    if root == "torch" and parts[-1:] == ["manual_seed"]:  # a generator of the task's own may be seeded
        return True
    return root in _IMPORTS and any(part.lstrip("_") in _RE_EXPORTED for part in parts)


def _ambiguous_results(tree: ast.Module, modules: Mapping[str, str]) -> Iterator[str]:
    """Name calls in forward code whose results a correct kernel need not reproduce."""
    outside = _outside_forward(tree)
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef) and node.name in outside:
            continue
        if isinstance(node, ast.Attribute) and node.attr in _UNIQUE_UP_TO_SIGN:
            yield ast.unparse(node) if _path(node, modules) else f".{node.attr}"
        elif isinstance(node, ast.Name) and _path(node, modules).rpartition(".")[2] in _UNIQUE_UP_TO_SIGN:
            yield node.id
        nodes.extend(ast.iter_child_nodes(node))


def _outside_forward(tree: ast.Module) -> set[str]:
    """Return functions that no forward code mentions: constructors and what only they call."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    outside = set(_OUTSIDE_FORWARD)
    while True:
        inside = [f for f in functions if f.name not in outside]
        mentioned = {name for f in inside for name in _names_in(f) if name != f.name}
        unmentioned = {f.name for f in inside} - mentioned - {"forward"}
        helpers = {name for name in unmentioned if not name.startswith("__")}
        if not helpers:
            return outside
        outside |= helpers


def _names_in(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _path(node: ast.expr, modules: Mapping[str, str]) -> str:
    """Return the dotted path of a name with its import resolved, empty where it starts otherwise."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join((modules.get(node.id, node.id), *parts))


def _is_device(text: str) -> bool:
    kind, _, number = text.partition(":")
    return kind in _DEVICE_TYPES and (not number or number.isdigit())
