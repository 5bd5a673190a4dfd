"""Whole models of the library, built small and called on inputs that their forward's parameters ask for.

Runs only in the process of the originals.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from ops_crawler.lifting.scaling import TOKENS, Shrinking, shrink

_FRAMES = 4
_SAMPLES = 4000
"""Length of raw audio in the small runs."""
PARAMETER_BYTES = 768 * 2**20
"""Of a model that is built for real, at most; an extract and the weights that it is given are twice that."""


def model_classes(module: ModuleType) -> list[type[nn.Module]]:
    """Return the models that a modeling module defines, plain ones before those with heads."""
    from transformers import PreTrainedModel

    found = [
        cls
        for cls in vars(module).values()
        if inspect.isclass(cls) and issubclass(cls, PreTrainedModel) and cls.__module__ == module.__name__
    ]
    found = [cls for cls in found if "forward" in vars(cls) and cls.config_class is not None]
    return sorted(found, key=lambda cls: ("For" in cls.__name__, len(cls.__name__), cls.__name__))


def build(cls: Any, how: Shrinking) -> nn.Module:
    """Return a small model in eval mode; whatever the library raises passes through.

    Raises `TooLargeError`.
    """
    config = cls.config_class()
    _replace_timm(config)
    shrink(config, how)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    with _limited_parameters():
        model: nn.Module = cls(config)
    return model.eval()


class TooLargeError(Exception):
    """A model has too many parameters. Raised by `build`, before all of them are there."""


@contextlib.contextmanager
def _limited_parameters() -> Iterator[None]:
    seen: dict[int, int] = {}
    total = 0

    def count(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        nonlocal total
        if parameter is not None and not parameter.is_meta:
            total += parameter.nbytes - seen.get(id(parameter), 0)
            seen[id(parameter)] = parameter.nbytes
            if total > PARAMETER_BYTES:
                raise TooLargeError(f"more than {PARAMETER_BYTES // 2**20} MiB of parameters")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def _replace_timm(config: Any) -> None:
    """Put a ResNet of the library in the place of one of the package timm, which need not be installed."""
    from transformers import ResNetConfig

    for part in list(sub_configs(config)):
        backbone = getattr(part, "backbone_config", None)
        if getattr(backbone, "model_type", "") == "timm_backbone":
            levels = len(getattr(backbone, "out_indices", None) or [4])
            stages = [f"stage{number}" for number in range(5 - min(levels, 4), 5)]
            narrow = ResNetConfig(embedding_size=32, hidden_sizes=[64, 128, 256, 512], depths=[1, 1, 1, 1])
            narrow.out_features = stages
            part.backbone_config = narrow


def sub_configs(config: Any) -> Iterator[Any]:
    """Yield a configuration and all that it contains."""
    yield config
    for value in vars(config).values():
        if hasattr(value, "to_dict") and value is not config:
            yield from sub_configs(value)


def inputs_for(model: Any, batch: int, tokens: int = TOKENS) -> dict[str, Any]:
    """Return inputs by name, as the forward's parameters ask for them."""
    parameters = inspect.signature(model.forward).parameters
    made = {name: _input(name, model, batch, tokens) for name in parameters}
    given = {name: value for name, value in made.items() if value is not None}
    if parameters.get("grid_thw") and "grid_thw" not in given:
        given |= _patches(model, batch, "hidden_states" if "hidden_states" in parameters else "pixel_values")
    if "use_cache" in parameters:
        given["use_cache"] = False
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in given and name in _REQUIRED:
            given[name] = _REQUIRED[name](model, batch, tokens)
    return given


def _one_more_axis(inputs: dict[str, Any]) -> dict[str, Any] | None:
    """Images as lists of images, or audio with a channel."""
    names = [name for name in ("pixel_values", "input_values") if name in inputs]
    return inputs | {name: inputs[name].unsqueeze(1) for name in names} if names else None


def _text_alone(inputs: dict[str, Any]) -> dict[str, Any] | None:
    """What a model takes besides images, if anything."""
    rest = {name: value for name, value in inputs.items() if not name.startswith(("pixel", "input_feat"))}
    return rest if len(rest) < len(inputs) and "input_ids" in rest else None


def _with_decoder(inputs: dict[str, Any]) -> dict[str, Any] | None:
    return inputs | {"decoder_input_ids": inputs["input_ids"]} if "input_ids" in inputs else None


VARIANTS: tuple[Callable[[dict[str, Any]], dict[str, Any] | None], ...] = (
    lambda inputs: inputs,
    _one_more_axis,
    _text_alone,
    _with_decoder,
)
"""Ways to call a model, tried in this order until one works; None where one does not apply."""


def _read(config: Any, *names: str, default: Any = None) -> Any:
    for part in sub_configs(config):
        for name in names:
            value = getattr(part, name, None)
            if value is not None:
                return value[0] if isinstance(value, list | tuple) and value else value
    return default


def _input(name: str, model: Any, batch: int, tokens: int) -> Any:
    config = model.config
    if name in ("input_ids", "decoder_input_ids"):
        vocabulary = _read(config, "vocab_size", default=128)
        return torch.randint(3, max(4, min(vocabulary, 512) - 1), (batch, tokens))
    if name in ("pixel_values", "pixel_values_videos"):
        return _pixels(model, batch, name)
    if name == "input_features":
        mel = _read(config, "num_mel_bins", "feature_size", "n_mels", "input_feat_per_channel", default=80)
        length = 2 * _read(config, "max_source_positions", default=64)
        frames_first = "lm" not in type(model).__name__.lower() and "hisper" not in type(model).__name__
        return torch.randn(
            (batch, min(length, 3000), mel) if frames_first else (batch, mel, min(length, 3000))
        )
    if name in ("input_values",):
        mel = _read(config, "num_mel_bins", default=None)
        length = _read(config, "max_length", default=1024)
        return (
            torch.randn(batch, length, mel)
            if mel and "AST" in type(model).__name__
            else torch.randn(batch, _SAMPLES)
        )
    if name == "bbox":
        corners = torch.randint(0, 100, (batch, tokens, 2))
        return torch.cat([corners, corners + 10], dim=-1)
    return None


def _pixels(model: Any, batch: int, name: str) -> Tensor:
    config = model.config
    size = _read(config, "image_size", "input_size", default=64)
    size = size.get("height", 64) if isinstance(size, dict) else size
    channels = _read(config, "num_channels", "in_channels", "in_chans", "num_input_channels", default=3)
    channels = channels if isinstance(channels, int) and channels <= 16 else 3
    frames = _read(config, "num_frames")
    if frames or name.endswith("videos"):
        return torch.randn(batch, frames or _FRAMES, channels, size, size)
    return torch.randn(batch, channels, size, size)


_GRID = 8
"""Patches per side of an image that comes as a list of patches."""


def _patches(model: Any, batch: int, name: str) -> dict[str, Tensor]:
    """Return images as patches with the grid that tells their number."""
    config = model.config
    side = _read(config, "patch_size", "spatial_patch_size", default=14)
    channels = _read(config, "in_channels", "in_chans", "num_channels", default=3)
    size = channels * side * side * _read(config, "temporal_patch_size", default=1)
    patches = torch.randn(batch * _GRID * _GRID, size)
    return {name: patches, "grid_thw": torch.tensor([[1, _GRID, _GRID]] * batch)}


def _hidden(model: Any, batch: int, tokens: int) -> Tensor:
    return torch.randn(batch, tokens, _read(model.config, "hidden_size", "d_model", "embed_dim", default=64))


_REQUIRED = {
    "inputs_embeds": _hidden,
    "hidden_states": _hidden,
    "encoder_hidden_states": _hidden,
    "input_embeds": _hidden,
}
"""Inputs that are made only where a model cannot do without."""
