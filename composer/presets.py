"""Sizes as real models have them, as plain numbers from their published configurations."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """Shapes inside one family of models."""

    family: str
    layout: str
    sizes: Mapping[str, tuple[int, ...]]
    """Letter of an axis to its sizes: the first is the input's, operators draw theirs from all."""


PRESETS = (
    Preset("ResNet-50, stage 1", "NCHW", {"C": (64, 256), "H": (56,), "W": (56,)}),
    Preset("ResNet-50, stage 2", "NCHW", {"C": (128, 512), "H": (28,), "W": (28,)}),
    Preset("VGG-16, block 1", "NCHW", {"C": (64, 128), "H": (224,), "W": (224,)}),
    Preset("MobileNetV2, stage 3", "NCHW", {"C": (144, 24, 32), "H": (56,), "W": (56,)}),
    Preset("EfficientNet-B0, stage 3", "NCHW", {"C": (240, 40, 80), "H": (28,), "W": (28,)}),
    Preset("ConvNeXt-T, stage 1", "NCHW", {"C": (96, 384), "H": (56,), "W": (56,)}),
    Preset("Stable Diffusion 1.5 U-Net, top", "NCHW", {"C": (320, 640), "H": (64,), "W": (64,)}),
    Preset("U-Net, second level", "NCHW", {"C": (128, 64, 256), "H": (128,), "W": (128,)}),
    Preset("ViT-B/16", "NLF", {"L": (197,), "F": (768, 3072)}),
    Preset("DeiT-Ti/16", "NLF", {"L": (197,), "F": (192, 768)}),
    Preset("BERT base", "NLF", {"L": (512,), "F": (768, 3072)}),
    Preset("GPT-2", "NLF", {"L": (1024,), "F": (768, 3072)}),
    Preset("T5 small", "NLF", {"L": (512,), "F": (512, 2048)}),
    Preset("Llama 3.2 1B", "NLF", {"L": (2048,), "F": (2048, 8192, 512)}),
    Preset("Qwen2.5 0.5B", "NLF", {"L": (1024,), "F": (896, 4864, 128)}),
    Preset("BERT base, pooled", "NF", {"F": (768, 3072)}),
    Preset("ResNet-50, pooled", "NF", {"F": (2048, 1000)}),
    Preset("VGG-16, classifier", "NF", {"F": (4096, 1000)}),
    Preset("Llama 3 8B, tokens", "NF", {"F": (4096, 14336, 1024)}),
    Preset("Whisper small, frames", "NCL", {"C": (80, 768), "L": (3000,)}),
    Preset("wav2vec 2.0, features", "NCL", {"C": (512,), "L": (3199, 1599)}),
    Preset("Conv-TasNet", "NCL", {"C": (512, 128), "L": (3199,)}),
    Preset("EnCodec, encoder", "NCL", {"C": (64, 128), "L": (2000,)}),
    Preset("C3D, block 2", "NCDHW", {"C": (64, 128), "D": (16,), "H": (56,), "W": (56,)}),
    Preset("3D U-Net, second level", "NCDHW", {"C": (64, 128), "D": (32,), "H": (32,), "W": (32,)}),
    Preset("R(2+1)D-18, stage 2", "NCDHW", {"C": (128, 64), "D": (8,), "H": (28,), "W": (28,)}),
    Preset("GPT-2, heads", "NALE", {"A": (12,), "L": (1024,), "E": (64,)}),
    Preset("ViT-B/16, heads", "NALE", {"A": (12,), "L": (197,), "E": (64,)}),
    Preset("Llama 3 8B, heads", "NALE", {"A": (32,), "L": (1024,), "E": (128,)}),
    Preset("DeiT-Ti/16, heads", "NALE", {"A": (3,), "L": (197,), "E": (64,)}),
    Preset("BERT base, tokens", "NT", {"T": (512,), "V": (30522,), "F": (768,)}),
    Preset("T5 small, tokens", "NT", {"T": (512,), "V": (32128,), "F": (512,)}),
    Preset("CLIP text, tokens", "NT", {"T": (77,), "V": (49408,), "F": (512,)}),
)
