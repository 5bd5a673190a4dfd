"""Operators on images."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LocalContrast(nn.Module):
    """Takes the average of the 3 x 3 neighbours away from every pixel.

    Shape:
        - Input: (batch, channels, height, width)
        - Output: the same
    """

    def forward(self, x: Tensor) -> Tensor:
        return x - F.avg_pool2d(x, kernel_size=3, stride=1, padding=1, count_include_pad=False)


class SqueezeExcitation(nn.Module):
    """Weighs the channels by what all pixels together say (arXiv 1709.01507).

    Shape:
        - Input: (batch, channels, height, width)
        - Output: the same
    """

    def __init__(self, channels: int, reduction: int = 4) -> None:
        super().__init__()
        self.squeeze = nn.Linear(channels, channels // reduction)
        self.excite = nn.Linear(channels // reduction, channels)

    def forward(self, x: Tensor) -> Tensor:
        weights = self.excite(F.relu(self.squeeze(x.amax(dim=(2, 3)))))
        return x * torch.sigmoid(weights)[:, :, None, None]


def merge_scales(x: Tensor, y: Tensor) -> Tensor:
    """Add a coarse version of `y` to `x`: half the resolution, brought back by repeating pixels."""
    coarse = F.avg_pool2d(y, kernel_size=2)
    return x + F.interpolate(coarse, size=x.shape[-2:], mode="nearest")
