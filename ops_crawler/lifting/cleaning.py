"""What a definition of the library loses when it is lifted: everything that does not compute.

Docstrings, annotations, logging and most decorators go; the fixed table of the library's helpers is bound:

| helper | bound to |
|---|---|
| `ALL_ATTENTION_FUNCTIONS` | the eager function of the same file |
| `ROPE_INIT_FUNCTIONS` | nothing; only the default rope is lifted |
| `GradientCheckpointingLayer` | `nn.Module` |
| `maybe_autocast`, `torch.autocast` | their block alone (tasks run without autocast) |
| `use_kernel_forward_from_hub`, `use_experts_implementation`, `auto_docstring` ... | the plain definition |
| `apply_chunking_to_forward` | the call itself, in one piece |
| `BaseModelOutput` and other records | a named tuple with the same fields |
| `transformers.initialization` | `torch.nn.init`, which it wraps |
| `np.sqrt`, `np.prod`, `np.pi` ... on plain numbers | the same of `math` |
| questions about tracing, compiling, flash attention, Apple's and the meta device | False |
| `device="cpu"` of what a constructor makes | nothing; layers are built on the CPU anyway |
| tests whether something is a cache of the library | False |

`ACT2FN` is bound later, to the activation that the recorded configuration asks for (`binding`).
"""

import ast
from typing import Any

from ops_crawler.lifting.folding import fold

_KEPT_DECORATORS = frozenset(
    "property staticmethod classmethod dataclass setter lru_cache cache wraps".split()
)
_DROPPED_CALLS = frozenset("logger warnings logging".split())
_DROPPED_FUNCTIONS = frozenset(
    "torch_compilable_check mark_static_address deprecate_kwarg _check standardize_rope_params".split()
)
_AUTOCAST = frozenset("maybe_autocast autocast no_grad device enable_grad".split())
_FALSE = frozenset(
    """is_torchdynamo_compiling is_torchdynamo_exporting is_tracing is_compiling is_exporting is_scripting
    is_flash_attention_requested is_torch_fx_proxy is_fx_tracing is_torch_xla_available
    is_deepspeed_zero3_enabled is_fsdp_managed_module is_jit_tracing is_torch_npu_available
    is_autocast_enabled""".split()
)
_CACHES = frozenset(
    """Cache DynamicCache EncoderDecoderCache StaticCache HybridCache MambaCache BlockMask
    DynamicLayer SlidingWindowCache""".split()
)
_BASES = {"GradientCheckpointingLayer": "nn.Module"}
_ATTENTION_TABLES = frozenset({"ALL_ATTENTION_FUNCTIONS"})
ROPE_TABLE = "ROPE_INIT_FUNCTIONS"
_NUMBERS = frozenset("prod sqrt pi log log2 exp ceil floor".split())
"""Of numpy, as layers call it: on plain numbers."""


def cleaned(node: Any) -> Any:
    """Return a top-level statement without what does not compute; the given tree is used up."""
    return ast.fix_missing_locations(fold(_Cleaner().visit(node)))


def last_name(node: ast.AST) -> str:
    """Return `c` of the expressions `c`, `a.b.c` and `a.c(...)`, an empty text for others."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def first_name(node: ast.AST) -> str:
    """Return `a` of the expressions `a`, `a.b.c` and `a.b(...)`, an empty text for others."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


class _Cleaner(ast.NodeTransformer):
    """Rewrites one definition in place."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [d for d in node.decorator_list if last_name(d) in _KEPT_DECORATORS]
        node.returns = None
        arguments = node.args
        spare = [one for one in (arguments.vararg, arguments.kwarg) if one]
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *spare]:
            argument.annotation = None
        self._without_docstring(node)
        self.generic_visit(node)
        _drop_unused(node, "device_type")
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.decorator_list = [d for d in node.decorator_list if last_name(d) in _KEPT_DECORATORS]
        node.keywords = []
        node.bases = [_base(base) for base in node.bases if not _is_generic(base)]
        fields = bool(node.decorator_list) or any(last_name(base) == "NamedTuple" for base in node.bases)
        node.body = [part for part in node.body if fields or not _is_declaration(part)]
        for part in node.body:
            if isinstance(part, ast.AnnAssign):
                part.annotation = ast.Name("object", ast.Load())
        self._without_docstring(node)
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        if isinstance(node.annotation, ast.Name) and node.annotation.id == "object":
            return node
        return ast.Assign([node.target], node.value) if node.value else None

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Call):
            called = node.value
            if first_name(called) in _DROPPED_CALLS or last_name(called) in _DROPPED_FUNCTIONS:
                return ast.Pass()
        return self.generic_visit(node)

    def visit_With(self, node: ast.With) -> Any:
        self.generic_visit(node)
        node.items = [one for one in node.items if last_name(one.context_expr) not in _AUTOCAST]
        return node if node.items else node.body

    def visit_If(self, node: ast.If) -> Any:
        if any(isinstance(part, ast.Name) and part.id == ROPE_TABLE for part in ast.walk(node)):
            in_body = any(
                isinstance(part, ast.Name) and part.id == ROPE_TABLE
                for one in node.body
                for part in ast.walk(one)
            )
            kept = node.orelse if in_body else node.body
            node = ast.If(ast.Constant(True), kept or [ast.Pass()], [])
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if node.attr in ("_attn_implementation", "_experts_implementation") and isinstance(
            node.ctx, ast.Load
        ):
            return ast.Constant("eager")
        if node.attr in _NUMBERS and isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy"):
            node.value.id = "math"
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        right = node.comparators[0]
        if isinstance(right, ast.Constant) and right.value in ("mps", "meta"):
            return ast.Constant(isinstance(node.ops[0], ast.NotEq))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if first_name(node.value) in _ATTENTION_TABLES:
            return ast.Name("eager_attention_forward", ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = last_name(node.func)
        if name == "get_interface" and first_name(node.func) in _ATTENTION_TABLES:
            return node.args[-1]
        if name == "apply_chunking_to_forward":  # without chunks, as by default
            return ast.Call(node.args[0], node.args[3:], [])
        if name in _FALSE:
            return ast.Constant(False)
        node.keywords = [one for one in node.keywords if not _is_cpu(one)]
        if name == "isinstance" and len(node.args) == 2 and _only_caches(node.args[1]):
            return ast.Constant(False)
        if name == "cast" and len(node.args) == 2 and isinstance(node.func, ast.Name):
            return node.args[1]
        return node

    @staticmethod
    def _without_docstring(node: ast.FunctionDef | ast.ClassDef) -> None:
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = node.body[1:]
        node.body = node.body or [ast.Pass()]


def _is_cpu(argument: ast.keyword) -> bool:
    """Whether an argument asks for the CPU, on which layers are built anyway."""
    return (
        argument.arg == "device"
        and isinstance(argument.value, ast.Constant)
        and argument.value.value == "cpu"
    )


def _base(base: ast.expr) -> ast.expr:
    bound = _BASES.get(last_name(base))
    return ast.parse(bound, mode="eval").body if bound else base


def _is_generic(base: ast.expr) -> bool:
    return last_name(base.value if isinstance(base, ast.Subscript) else base) in ("Generic", "Protocol")


def _is_declaration(part: ast.stmt) -> bool:
    """Whether a statement of a class body only tells the library something about the class."""
    if isinstance(part, ast.AnnAssign) and part.value is None:
        return True
    target = part.targets[0] if isinstance(part, ast.Assign) else getattr(part, "target", None)
    return isinstance(target, ast.Name) and target.id in ("config_class", "config", "_can_record_outputs")


def _only_caches(kinds: ast.expr) -> bool:
    names = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
    return all(last_name(name) in _CACHES for name in names)


def _drop_unused(function: ast.FunctionDef, name: str) -> None:
    """Leave out the assignments to a name that is read nowhere any more."""
    reads = any(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load)
        for part in ast.walk(function)
    )
    if not reads:
        function.body = [
            part
            for part in function.body
            if not (isinstance(part, ast.Assign) and last_name(part.targets[0]) == name)
        ] or [ast.Pass()]
