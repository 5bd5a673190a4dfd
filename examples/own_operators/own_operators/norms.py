"""Norms."""

import torch
from torch import Tensor, nn


class FusedRMSNorm(nn.Module):
    """Root-mean-square norm over the last axis and its gain, which starts at one, in a single pass.

    Shape:
        - Input: (*, features)
        - Output: the same
    """

    def __init__(self, features: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(features))

    def forward(self, x: Tensor) -> Tensor:
        scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps)
        return x * scale * self.gain
