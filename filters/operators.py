"""Which operator a call is, in one canonical spelling.

Three vocabularies, each for one purpose:

- a **canonical name** is the public path under which torch documents an operator: `x.sigmoid()`,
  `torch.special.expit` and `F.sigmoid` are `torch.sigmoid`; `x.relu()` and `torch.relu`, which torch's
  pages do not list, are `torch.nn.functional.relu`; in-place forms lose their underscore;
- a **label** is the canonical name of what counts as an operator of a task: no views, casts, copies,
  creation, comparisons, indexing or questions about a tensor, no dropout (it is inactive, or the task is
  stochastic), nothing written as `+ - * / // %` or `~ & | ^` (to torch, `x.add(y)` is the same call);
- a **signature element** is an operator's kind, whatever its style: `nn.ReLU`, `F.relu` and `x.relu()` are
  `relu`; `mm`, `bmm` and `@` are `matmul`; `torch.add` and `+` are `add`; `view` and `flatten` are
  `reshape`. All that is called counts but for indexing and questions about a tensor; `computes` tells the
  elements that do work from views, copies, casts, creation and inactive dropout.

All three take dotted paths as `torch.overrides.resolve_name` spells them (`torch.Tensor.add`), canonical
names, or paths of `torch.nn` classes. `label_of`, `element_of` and `module_label` take what runs.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import resolve_name


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VIEWS = _words(
    """H T adjoint alias as_strided atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to chunk conj
    diagonal dsplit expand expand_as flatten hsplit imag mH mT meshgrid moveaxis movedim narrow permute ravel
    real reshape reshape_as resolve_conj resolve_neg select slice split split_with_sizes squeeze swapaxes
    swapdims t tensor_split transpose unbind unflatten unsqueeze view view_as view_as_complex view_as_real
    vsplit"""
)
PROPERTIES = frozenset(f"torch.Tensor.{name}" for name in ("T", "mT", "H", "mH", "real", "imag"))
"""Views that are read like attributes."""
COPIES = _words("clone contiguous copy detach requires_grad retain_grad")
CASTS = _words(
    """bfloat16 bool byte cdouble cfloat chalf char cpu cuda double float half int long short to to_dense
    type type_as"""
)
CREATION = _words(
    """arange asarray as_tensor bartlett_window bernoulli blackman_window cauchy empty empty_like
    empty_permuted empty_strided exponential eye fill from_numpy frombuffer full full_like geometric
    hamming_window hann_window kaiser_window linspace log_normal logspace multinomial new_empty new_full
    new_ones new_tensor new_zeros normal ones ones_like poisson rand rand_like randint randint_like randn
    randn_like random randperm range scalar_tensor tensor tril_indices triu_indices uniform zero zeros
    zeros_like"""
)
COMPARISONS = _words(
    """allclose eq equal ge gt is_complex is_floating_point is_nonzero is_tensor isclose isfinite isinf isnan
    isneginf isposinf isreal le lt ne"""
)
QUESTIONS = _words(
    """backward can_cast data_ptr dim element_size get_default_dtype get_device getitem is_contiguous
    is_pinned is_signed item manual_seed ndimension nelement numel numpy promote_types result_type
    set_grad_enabled setitem size storage storage_offset stride tolist untyped_storage"""
)
DROPOUT = _words("alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout feature_dropout")
_SIGNS = _words(
    "add bitwise_and bitwise_not bitwise_or bitwise_xor div floor_divide mul neg pos remainder sub"
)
"""What Python writes as `+ - * / // %` between values and `~ & | ^` between masks."""

_NEVER_COUNTED = VIEWS | COPIES | CASTS | CREATION | QUESTIONS | DROPOUT

_ALIASES = {
    "absolute": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "clip": "clamp", "concat": "cat",
    "concatenate": "cat", "divide": "div", "expit": "sigmoid", "fix": "trunc", "gammainc": "igamma",
    "gammaincc": "igammac", "gammaln": "lgamma", "ger": "outer", "greater": "gt", "greater_equal": "ge",
    "less": "lt", "less_equal": "le", "moveaxis": "movedim", "multigammaln": "mvlgamma", "multiply": "mul",
    "negative": "neg", "not_equal": "ne", "positive": "pos", "psi": "digamma", "row_stack": "vstack",
    "spmm": "mm", "dsmm": "mm", "subtract": "sub", "swapaxes": "transpose", "swapdims": "transpose",
    "trapz": "trapezoid", "true_divide": "div",
}  # fmt: skip
"""Names that torch documents as aliases of another one, or binds to the same callable."""

_SPECIAL_METHODS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "div": "div", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "neg": "neg",
    "pos": "pos", "abs": "abs", "invert": "bitwise_not", "getitem": "getitem", "setitem": "setitem",
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge",
}  # fmt: skip
"""Operators of Python by the name of their method, without underscores and without `r` and `i`."""

_NO_OPERATORS = (
    nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict, nn.Identity, nn.Flatten,
    nn.Unflatten, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout,
    nn.FeatureAlphaDropout,
)  # fmt: skip
"""Modules that contain, pass on or re-shape; what they call is seen by itself."""

_CONTAINERS = frozenset(f"torch.nn.{cls.__name__}" for cls in (*_NO_OPERATORS[:5], nn.Module))

_KINDS = {
    "mm": "matmul", "bmm": "matmul", "mv": "matmul", "amax": "max", "amin": "min", "inverse": "inv",
    "clampmin": "clamp", "clampmax": "clamp", "softmax2d": "softmax", "bce": "binarycrossentropy",
    "bcewithlogits": "binarycrossentropywithlogits", "rnntanh": "rnn", "rnnrelu": "rnn",
    "multiheadattention": "multiheadattentionforward", "upsample": "interpolate",
    "upsamplingnearest2d": "interpolate", "upsamplingbilinear2d": "interpolate",
    "upsamplebilinear": "interpolate", "upsamplenearest": "interpolate",
    "flatten": "reshape", "ravel": "reshape", "reshapeas": "reshape", "unflatten": "reshape",
    "view": "reshape", "viewas": "reshape",
    "adjoint": "transpose", "mt": "transpose", "mh": "transpose", "h": "transpose", "t": "transpose",
    "broadcastto": "expand", "expandas": "expand", "bfloat16": "to", "bool": "to", "byte": "to",
    "double": "to", "float": "to", "half": "to", "int": "to", "long": "to", "type": "to", "typeas": "to",
}  # fmt: skip
"""Signature elements that are one kind though torch gives them several names."""


@lru_cache(maxsize=4096)
def canonical_name(path: str) -> str | None:
    """Return the path under which torch documents an operator, None for what is no public operator."""
    namespace, _, name = path.rpartition(".")
    if path.startswith("torch.nn.") and not path.startswith("torch.nn.functional."):
        module = getattr(nn, name, None)
        is_module = isinstance(module, type) and issubclass(module, nn.Module)
        return f"torch.nn.{name}" if is_module and namespace != "torch.nn.init" else None
    if path.startswith("aten."):
        namespace, name = "torch", path.split(".")[1]
    elif not path.startswith("torch."):
        return None
    if name == "__get__":
        path = namespace if namespace in PROPERTIES else ""
        namespace, _, name = path.rpartition(".")
    name = _plain(name)
    if not name or name.startswith("_"):
        return None
    if namespace == "torch.Tensor" and name == "unfold":  # a view; F.unfold gathers patches
        return "torch.Tensor.unfold"
    if name in ("getitem", "setitem"):
        return f"torch.Tensor.__{name}__"
    if namespace in ("torch.linalg", "torch.fft"):
        return f"{namespace}.{name}"
    own, functional_form = getattr(torch, name, None), getattr(functional, name, None)
    if callable(own) and own.__doc__ and own is not functional_form:
        return f"torch.{name}"
    if callable(functional_form):
        return f"torch.nn.functional.{name}"
    if namespace == "torch.special":
        return path
    if callable(own):
        return f"torch.{name}"
    is_method = callable(getattr(torch.Tensor, name, None)) or f"torch.Tensor.{name}" in PROPERTIES
    return f"torch.Tensor.{name}" if is_method else None


def _plain(name: str) -> str:
    """Return the name of an operator without special-method, in-place and alias spelling; "" for none."""
    if name.startswith("__"):
        method = name.strip("_")
        return _SPECIAL_METHODS.get(method) or _SPECIAL_METHODS.get(method[1:], "")
    name = name.removesuffix("_")
    return _ALIASES.get(name, name)


@lru_cache(maxsize=4096)
def label_of_name(path: str) -> str | None:
    """Return the label of an operator given by its path, None where it is none of a task's operators."""
    name = canonical_name(path)
    if name is None or name == "torch.Tensor.unfold":
        return None
    if name.startswith("torch.nn.") and not name.startswith("torch.nn.functional."):
        return None if issubclass(_module_class(name), _NO_OPERATORS) else name
    short = name.rpartition(".")[2].strip("_")
    if short in _NEVER_COUNTED or short in COMPARISONS:
        return None
    return None if short in _SIGNS and path.startswith("torch.Tensor.") else name


@lru_cache(maxsize=4096)
def signature_element(path: str) -> str | None:
    """Return the kind of operator that a path, canonical name or label stands for, None where none counts."""
    name = canonical_name(path)
    if name is None or name.rpartition(".")[2].strip("_") in QUESTIONS:
        return None
    if name == "torch.Tensor.unfold":
        return "unfold_view"
    return None if name in _CONTAINERS else kind_of_name(name)


def computes(element: str) -> bool:
    """Whether a signature element does work: not views, copies, casts, creation, inactive dropout."""
    return element not in _LIGHT_KINDS


def kind_of_name(path: str) -> str:
    """Return the kind of operator of whatever is spelled like one: `nn.Conv2d`, `F.conv2d`, `conv2d`."""
    name = style_free(path)
    name = re.sub(r"^(reflection|replication|zero|constant|circular)pad[123]d$", "pad", name)
    return _KINDS.get(name, name)


def style_free(path: str) -> str:
    """Return an operator's name without namespace, style and alias: `nn.L1Loss` and `F.l1_loss` are `l1`."""
    name = path.rpartition(".")[2].removesuffix("_")
    return _ALIASES.get(name, name).replace("_", "").lower().removesuffix("loss")


@lru_cache(maxsize=4096)
def without_rank(element: str) -> str:
    """Return an element as its function has it: `nn.BatchNorm2d` tells a rank, `F.batch_norm` does not."""
    return re.sub(r"^(batchnorm|instancenorm)[123]d$", r"\1", element)


_LIGHT_KINDS = frozenset(
    {kind_of_name(name) for name in VIEWS | COPIES | CASTS | CREATION | DROPOUT} | {"unfold_view", "identity"}
)


def label_of(func: Callable[..., Any]) -> str | None:
    """Return the label of a callable as a `TorchFunctionMode` sees it, None where it is no operator."""
    path = resolve_name(func)
    return label_of_name(path) if path else None


def element_of(func: Callable[..., Any]) -> str | None:
    """Return the signature element of a callable as a `TorchFunctionMode` sees it."""
    path = resolve_name(func)
    return signature_element(path) if path else None


def module_label(module: nn.Module) -> str | None:
    """Return `torch.nn.X` for a module whose forward is torch's own, None for containers and local classes.

    What a module without label calls has to be looked at by itself; what a labelled one calls is its
    own affair. A local subclass that keeps torch's forward counts as the class it inherits from.
    """
    path = _torch_class(module)
    return label_of_name(path) if path else None


def module_element(module: nn.Module) -> str | None:
    """Return the signature element of a module whose forward is torch's own, `nn.Identity` included."""
    path = _torch_class(module)
    return signature_element(path) if path else None


def _torch_class(module: nn.Module) -> str | None:
    for base in type(module).__mro__:
        from_torch = base.__module__.startswith("torch.nn.modules.")
        if base is nn.Module or (not from_torch and "forward" in vars(base)):
            return None
        if from_torch:
            return f"torch.nn.{base.__name__}"
    return None


def _module_class(name: str) -> type[nn.Module]:
    cls: type[nn.Module] = getattr(nn, name.removeprefix("torch.nn."))
    return cls
