"""Why no layer is built from an operator. An operator that is set aside is listed all the same.

The first reason that holds is given, in the order of `REASONS`. In-place forms, aliases and deprecation are
read from names and docstrings; the rest torch does not tell, so it is listed here by name.
"""

import re
from collections.abc import Callable
from typing import Any

import torch

from ops_crawler.inspection import docstring
from ops_crawler.lifting.reasons import LIFTING_REASONS

REASONS = {
    "in_place": "writes into its argument",
    "alias": "another name of an operator that is listed under its canonical name",
    "deprecated": "its documentation advises against it",
    "random": "draws random numbers, in training at least",
    "creation": "makes a tensor from no tensor, or one whose values do not depend on its argument's",
    "view_only": "shows its argument in another shape or order, or hands it on",
    "copy": "gives the values of its argument again",
    "no_tensor": "answers a question about tensors, types or shapes",
    "data_dependent": "the shape of the result depends on values",
    "ambiguous": "the result is unique only up to sign or order",
    "sparse": "for sparse tensors",
    "quantized": "for quantized tensors",
    "container": "holds or repeats other modules",
    "lazy": "learns its sizes at the first call; the plain module is listed beside it",
    "abstract": "a base class",
    "distributed": "needs several devices or processes",
    "hardware": "runs on some devices or narrow types only",
    "internal": "undocumented, or for one backend",
    "needs_config": "one's own class whose constructor takes a config object",
    "no_plain_source": "one's own operator whose text cannot stand alone in a task",
    "fails": "one's own operator that cannot be called as its usage says",
    **LIFTING_REASONS,
}
"""Every code that `Operator.set_aside` may hold, with its meaning."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BY_NAME = {
    "random": _words(
        """alpha_dropout bernoulli binomial dropout dropout1d dropout2d dropout3d feature_alpha_dropout
        feature_dropout fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d
        fractional_max_pool3d_with_indices gumbel_softmax multinomial native_dropout normal poisson rand
        rand_like randint randint_like randn randn_like randperm rrelu AlphaDropout Dropout Dropout1d
        Dropout2d Dropout3d FeatureAlphaDropout FractionalMaxPool2d FractionalMaxPool3d RReLU"""
    ),
    "creation": _words(
        """arange as_tensor asarray bartlett_window blackman_window empty empty_like empty_permuted
        empty_quantized empty_strided eye fftfreq fill from_file from_numpy frombuffer full full_like
        hamming_window hann_window kaiser_window linspace logspace ones ones_like range rfftfreq
        scalar_tensor tensor tril_indices triu_indices zeros zeros_like"""
    ),
    "view_only": _words(
        """adjoint as_strided atleast_1d atleast_2d atleast_3d broadcast_tensors broadcast_to chunk conj
        detach diagonal dsplit flatten hsplit imag meshgrid movedim narrow permute positive ravel
        real reshape resolve_conj resolve_neg select split split_with_sizes squeeze t tensor_split transpose
        unbind unflatten unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze view_as_complex
        view_as_real vsplit Flatten Identity Unflatten"""
    ),
    "copy": _words("clone"),
    "no_tensor": _words(
        """allclose assert_int_or_pair broadcast_shapes can_cast cudnn_is_acceptable equal get_device
        is_complex is_conj is_distributed is_floating_point is_inference is_neg is_nonzero is_same_size
        is_signed is_vulkan_available numel promote_types result_type sym_constrain_range
        sym_constrain_range_for_size"""
    ),
    "data_dependent": _words("argwhere bincount masked_select nonzero unique unique_consecutive"),
    "ambiguous": _words("eig eigh geqrf ldl_factor ldl_factor_ex ormqr qr svd"),
    "sparse": _words("dsmm hsmm hspmm saddmm smm spmm sspaddmm"),
    "quantized": _words(
        """choose_qparams_optimized dequantize fake_quantize_per_channel_affine
        fake_quantize_per_tensor_affine fused_moving_avg_obs_fake_quant int_repr"""
    ),
    "container": _words("ModuleDict ModuleList ParameterDict ParameterList Sequential"),
    "abstract": _words("Container Module RNNBase RNNCellBase"),
    "distributed": _words("DataParallel SyncBatchNorm"),
    "hardware": _words("grouped_mm scaled_grouped_mm scaled_mm"),
}
_BY_PATTERN = (
    ("copy", re.compile(r"(?<!index)_copy$")),
    ("sparse", re.compile(r"^sparse_|_sparse_$")),
    ("quantized", re.compile(r"quantize|^q_|^fbgemm_")),
    ("lazy", re.compile(r"^Lazy")),
    ("internal", re.compile(r"^(cudnn|miopen|mkldnn|native)_|_for_size$")),
)
_ADVICE = re.compile(r"\bis deprecated (?:and|in favor)")
_PART = re.compile(r":attr:|behavior")


def reason_against(name: str, target: Callable[..., Any], alias_group: str) -> str | None:
    """Return the code of the reason why torch's operator of that name is set aside, or None."""
    short = name.rpartition(".")[2]
    held = {
        "in_place": short.endswith("_"),
        "alias": alias_group != name,
        "deprecated": _is_deprecated(docstring(target)),
        "internal": not docstring(target) and not docstring(getattr(torch.Tensor, short, None)),
    }
    held |= {reason: True for reason, names in _BY_NAME.items() if short in names}
    held |= {reason: True for reason, pattern in _BY_PATTERN if pattern.search(short)}
    return next((reason for reason in REASONS if held.get(reason)), None)


def _is_deprecated(text: str) -> bool:
    """Whether a docstring advises against the whole operator, not against a parameter or a default."""
    before = (text[: found.start()].rpartition(".")[2] for found in _ADVICE.finditer(text))
    return any(not _PART.search(sentence) for sentence in before)


_LIGHT = frozenset().union(
    *(_BY_NAME[reason] for reason in ("random", "creation", "view_only", "copy", "no_tensor")),
    _words(
        """add bitwise_and bitwise_not bitwise_or bitwise_xor div eq expand expand_as floor_divide ge gt
        isfinite isinf isnan le lt mul ne neg remainder reshape_as sub to true_divide type_as
        view view_as"""
    ),
)
"""What runs without counting as one of a task's operators: views, copies, comparisons, `+ - * /`."""

_BY_SIGN = {"pow": "pow", "rpow": "pow", "matmul": "matmul", "rmatmul": "matmul", "abs": "abs"}
"""Methods behind Python's operators that count."""


def counted_inside(path: str) -> str | None:
    """Return the operator that ran inside an own one, None where it does not count as one of a task's.

    `path` is `resolve_name`'s. The filters decide; this is what the composer needs to know beforehand.
    """
    namespace, _, short = path.rpartition(".")
    if not path.startswith("torch."):
        return None
    if short.startswith("__"):
        short = _BY_SIGN.get(short.strip("_"), "")
    short = short.removesuffix("_")
    if not short or short.startswith("_") or short in _LIGHT:
        return None
    return f"{namespace.replace('torch.Tensor', 'torch')}.{short}"
