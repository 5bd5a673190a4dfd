"""What the text alone tells: is it a task, and may it be run at all?

The only filters that read source instead of facts. They are the first line in front of the sandbox,
not a security boundary.
"""

import ast
import warnings
from collections.abc import Iterator

from filters.policy import Policy
from filters.reasons import Reason
from filters.verdict import Finding

_IMPORTS = frozenset("torch math typing collections dataclasses functools".split())
_FORBIDDEN_MODULES = tuple(
    """torch.utils.cpp_extension torch.utils.data torch.ops torch.classes torch._C torch._dynamo
    torch._inductor torch.library torch.jit torch.multiprocessing torch.distributed torch.hub torch.package
    torch.onnx torch.export torch.profiler torch.testing torch.autograd.profiler""".split()
)
_FORBIDDEN_NAMES = frozenset(
    """exec eval compile open input __import__ getattr setattr delattr globals locals vars breakpoint exit
    quit memoryview id hash""".split()
)
_PROCESS_STATE = """set_default_dtype set_default_device set_default_tensor_type set_num_threads
    set_num_interop_threads set_grad_enabled use_deterministic_algorithms manual_seed seed set_rng_state
    set_float32_matmul_precision set_flush_denormal"""
_FILES_AND_MEMORY = "save load from_file data_ptr untyped_storage storage from_blob load_inline"
_COMPILER = "is_compiling is_dynamo_compiling is_scripting is_tracing compile disable graph_break"
_DEVICE = "cuda cpu pin_memory synchronize current_stream Stream"
_PYTHON = """__globals__ __builtins__ __subclasses__ __code__ __closure__ __getattribute__ __reduce__
    __loader__ __spec__ system popen"""
_FORBIDDEN_ATTRIBUTES = frozenset(
    " ".join((_PROCESS_STATE, _FILES_AND_MEMORY, _COMPILER, _DEVICE, _PYTHON)).split()
)
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
    except UnicodeEncodeError as error:
        return Finding(reason=Reason.SYNTAX, evidence={"error": f"no UTF-8 at character {error.start}"})
    except (SyntaxError, ValueError) as error:
        return Finding(reason=Reason.SYNTAX, evidence={"error": str(error).splitlines()[0][:200]})
    except (RecursionError, MemoryError):
        return Finding(reason=Reason.SYNTAX, evidence={"error": "nested too deeply"})
    return contract(tree) or forbidden(tree)


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


def forbidden(tree: ast.Module) -> Finding | None:
    """Imports and names by which a task could do more than compute, or be no usable reference."""
    found = {what for node in ast.walk(tree) for what in _objections(node)} | set(_ambiguous_results(tree))
    return Finding(reason=Reason.FORBIDDEN, evidence={"found": sorted(found)[:10]}) if found else None


def _objections(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from _imports(node)
    elif isinstance(node, ast.Name) and node.id in _FORBIDDEN_NAMES and isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.Attribute):
        dotted = ast.unparse(node) if _is_dotted(node) else f".{node.attr}"
        if node.attr in _FORBIDDEN_ATTRIBUTES or dotted.startswith(_FORBIDDEN_MODULES):
            yield dotted
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_device(node.value):
        yield f"device {node.value!r}"
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield f"{type(node).__name__.lower()} {', '.join(node.names)}"


def _ambiguous_results(tree: ast.Module) -> Iterator[str]:
    """Name calls in forward code whose results a correct kernel need not reproduce."""
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.FunctionDef) and node.name in _OUTSIDE_FORWARD:
            continue
        if isinstance(node, ast.Attribute) and node.attr in _UNIQUE_UP_TO_SIGN:
            yield ast.unparse(node) if _is_dotted(node) else f".{node.attr}"
        nodes.extend(ast.iter_child_nodes(node))


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
        if name.split(".")[0] not in _IMPORTS or name.startswith(_FORBIDDEN_MODULES):
            yield f"import {name}"


def _is_dotted(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_device(text: str) -> bool:
    kind, _, number = text.partition(":")
    return kind in _DEVICE_TYPES and (not number or number.isdigit())
