"""Position embeddings."""

import torch
from torch import Tensor, nn

_BASE = 10000.0


def _swap_halves(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class RotaryEmbedding(nn.Module):
    """Rotates pairs of features by an angle that grows with the position (arXiv 2104.09864).

    Shape:
        - Input: (batch, length, features), features even
        - Output: the same
    """

    cosine: Tensor
    sine: Tensor

    def __init__(self, length: int, features: int) -> None:
        super().__init__()
        frequencies = _BASE ** (-torch.arange(0, features, 2) / features)
        angles = torch.outer(torch.arange(length), frequencies).repeat(1, 2)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.cosine + _swap_halves(x) * self.sine
