"""Default configurations of the library made small enough to build and run on a CPU.

Widths are divided by one number, so that whatever divides another width still does; heads keep their count
and become narrower. Depths, vocabularies and experts are cut. Dropout is switched off: its layers would
differ between train and eval mode.
"""

import contextlib
import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shrinking:
    """How a configuration is made small."""

    divisor: int
    """Of all widths; 0 keeps them, and vocabularies, images and experts too."""
    fewer_heads: bool = False
    """Divide the number of heads, so that each keeps its width."""
    whole_depth: bool = False
    """Keep the number of layers."""


WIDTHS = (Shrinking(8), Shrinking(8, fewer_heads=True), Shrinking(2), Shrinking(1))
"""Tried in this order until a model builds and runs."""
WHOLE_DEPTH = Shrinking(8, whole_depth=True)
"""For models that name layers by number."""
FULL = Shrinking(0)
"""The library's own widths."""
TOKENS = 32
"""Length of token sequences in the small runs."""
_VOCABULARY = 512
_DEPTH = 2
_EXPERTS = 8
_IMAGE = 256
"""Largest side of images, in pixels."""
_NARROWEST = 16
"""Widths below it are counts, strides or kernels and stay."""
_WIDTH = re.compile(
    r"(hidden|embed|embd|intermediate|ffn|d_model|d_ff|d_inner|dim|channel|inner|feature|width|filters|proj"
    r"|d_kv|rank|state_size|planes|lru|expert_size|output_size|neck|bottleneck|hid)"
)
_NO_WIDTH = re.compile(
    r"(num_|vocab|image|patch|kernel|window|max_|min_|token|_id$|layers|stride|groups|theta|base|depth|position"
    r"|heads|temperature|mel|mult|ratio|n_fft|hop|freq|sample|num$|num_channels|in_chans|n_group)"
)
_HEADS = re.compile(r"(num|n)_.*heads?$|^n_head")
_DEPTHS = re.compile(r"(num_.*layers|layers$|n_layer|num_blocks|^depth$|num_stages_layers|n_blocks)")
_DROPOUT = re.compile(r"(dropout|drop_path|drop_rate|layerdrop|pdrop|droprate|jitter)")


def shrink(config: Any, how: Shrinking) -> None:
    """Make a configuration small in place."""
    plain = {name: value for name, value in vars(config).items() if not name.startswith("_")}
    for name, value in plain.items():
        if name == "image_size" and how.divisor and isinstance(value, int) and value > _IMAGE:
            patch = plain.get("patch_size")
            value = _IMAGE if not isinstance(patch, int) or _IMAGE % patch == 0 else 14 * patch
            with contextlib.suppress(Exception):  # a validator of the library
                setattr(config, name, value)
            continue
        if hasattr(value, "to_dict"):
            shrink(value, how)
            continue
        smaller = _smaller(name, value, how)
        if smaller is not value:
            with contextlib.suppress(Exception):  # a validator or a read-only property of the library
                setattr(config, name, smaller)


def _smaller(name: str, value: Any, how: Shrinking) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return 0.0 if _DROPOUT.search(name) else value
    if isinstance(value, dict):
        sections = value.get("mrope_section")  # of a head's width
        if not sections or not how.divisor or how.fewer_heads:
            return value
        return value | {"mrope_section": [one // how.divisor for one in sections]}
    if isinstance(value, list | tuple):
        if name in ("depths", "layer_depths", "num_layers", "blocks") and not how.whole_depth:
            return type(value)(min(one, _DEPTH) if isinstance(one, int) else one for one in value)
        if name in ("layer_types", "mlp_layer_types"):
            return value
        return type(value)(_smaller(name, one, how) for one in value)
    if not isinstance(value, int):
        return value
    return _smaller_int(name, value, how)


def _smaller_int(name: str, value: int, how: Shrinking) -> int:
    divisor = how.divisor
    if "vocab" in name and "size" in name:
        return min(value, _VOCABULARY) if divisor else value
    if name.endswith(("_token_id", "_token_index", "token_ids")):
        return min(value, _VOCABULARY - 1) if divisor else value
    if _DEPTHS.search(name):
        return value if how.whole_depth else min(value, _DEPTH)
    if how.fewer_heads and _HEADS.search(name):
        return value // divisor if value % divisor == 0 else 1
    if re.search(r"(num|n)_.*experts$|num_experts", name) and value > _EXPERTS:
        return _EXPERTS if divisor else value
    if re.search(r"(experts_per_tok|top_k|topk_group|n_group)", name) and value > 2:
        return 2 if divisor else value
    if divisor > 1 and _WIDTH.search(name) and not _NO_WIDTH.search(name):
        return value // divisor if value >= _NARROWEST and value % divisor == 0 else value
    return value
