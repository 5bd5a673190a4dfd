"""What devices can do: the few figures from which eager times are predicted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProfile:
    """Speeds and limits of one kind of device. Frozen with a run: candidates depend on it."""

    name: str
    copy_bytes_per_second: float
    """Bytes read and written by a large element-wise float32 operator, per second."""
    matmul_flops_per_second: float
    """Of a large float32 matrix product without TF32."""
    launch_seconds: float
    """Fixed cost of one aten call."""
    tensor_bytes_max: int
    """Largest single tensor, intermediates included."""
    input_bytes_max: int
    peak_bytes_max: int
    slowdowns: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Measured time relative to the figures above: of an aten operator, or of all calls of a public one."""

    def seconds(self, aten_name: str, bytes_moved: int, flops: int) -> float:
        """Return the predicted time of one aten call."""
        roofline = max(bytes_moved / self.copy_bytes_per_second, flops / self.matmul_flops_per_second)
        return roofline * self.slowdowns.get(aten_name, 1.0) + self.launch_seconds


CPU = DeviceProfile(
    name="cpu",
    copy_bytes_per_second=32e9,
    matmul_flops_per_second=125e9,
    launch_seconds=5e-6,
    tensor_bytes_max=31 * 2**20,
    input_bytes_max=256 * 2**20,
    peak_bytes_max=512 * 2**20,
    slowdowns=MappingProxyType(
        {
            "_log_softmax": 2.7,
            "_softmax": 3.0,
            "adaptive_max_pool2d": 16.0,
            "amax": 1.5,
            "avg_pool2d": 11.0,
            "convolution": 1.3,
            "elu": 3.7,
            "erf": 4.2,
            "gelu": 1.6,
            "grouped_convolution": 7.0,
            "hypot": 2.0,
            "log1p": 2.3,
            "log_sigmoid_forward": 5.0,
            "logaddexp": 3.2,
            "logsumexp": 10.0,
            "max_pool2d_with_indices": 14.0,
            "mish": 9.0,
            "native_batch_norm": 5.3,
            "native_group_norm": 1.4,
            "native_layer_norm": 1.5,
            "sigmoid": 1.5,
            "silu": 1.6,
            "sin": 3.2,
            "softplus": 4.5,
            "sqrt": 1.4,
            "std": 34.0,
            "tanh": 6.5,
            "where": 6.0,
            "torch.acosh": 13.0,
            "torch.amin": 2.6,
            "torch.asinh": 16.0,
            "torch.cdist": 8.0,
            "torch.cos": 2.5,
            "torch.digamma": 10.0,
            "torch.erfc": 2.8,
            "torch.expm1": 2.4,
            "torch.fft.fft": 3.5,
            "torch.fft.fft2": 5.3,
            "torch.fft.fftn": 4.0,
            "torch.fft.hfft": 3.6,
            "torch.fft.ifft": 3.9,
            "torch.fft.ifft2": 6.6,
            "torch.fft.ihfft": 8.8,
            "torch.fft.irfft": 8.1,
            "torch.fft.rfft": 7.1,
            "torch.fft.rfft2": 6.0,
            "torch.fft.rfftn": 5.0,
            "torch.fmax": 2.6,
            "torch.fmin": 2.3,
            "torch.i0": 79.0,
            "torch.igamma": 28.0,
            "torch.igammac": 35.0,
            "torch.index_select": 4.4,
            "torch.kthvalue": 32.0,
            "torch.ldexp": 3.7,
            "torch.lgamma": 5.3,
            "torch.linalg.inv": 3.9,
            "torch.linalg.inv_ex": 3.6,
            "torch.linalg.matrix_exp": 28.0,
            "torch.linalg.slogdet": 9.2,
            "torch.linalg.solve": 25.0,
            "torch.linalg.solve_triangular": 7.4,
            "torch.logcumsumexp": 41.0,
            "torch.logdet": 4.7,
            "torch.masked_fill": 6.3,
            "torch.max": 5.7,
            "torch.median": 50.0,
            "torch.min": 7.9,
            "torch.mvlgamma": 6.4,
            "torch.nanmean": 9.0,
            "torch.nanmedian": 61.0,
            "torch.nanquantile": 21.0,
            "torch.nansum": 2.7,
            "torch.nn.AdaptiveAvgPool1d": 5.7,
            "torch.nn.AdaptiveAvgPool2d": 4.4,
            "torch.nn.AdaptiveAvgPool3d": 10.0,
            "torch.nn.AdaptiveMaxPool3d": 15.0,
            "torch.nn.AvgPool3d": 9.8,
            "torch.nn.BCELoss": 2.6,
            "torch.nn.Bilinear": 24.0,
            "torch.nn.CELU": 3.3,
            "torch.nn.ConstantPad2d": 4.4,
            "torch.nn.ConstantPad3d": 6.2,
            "torch.nn.Conv3d": 3.1,
            "torch.nn.EmbeddingBag": 35.0,
            "torch.nn.GRU": 15.0,
            "torch.nn.InstanceNorm1d": 2.3,
            "torch.nn.InstanceNorm2d": 3.0,
            "torch.nn.LPPool2d": 3.7,
            "torch.nn.LPPool3d": 6.1,
            "torch.nn.LocalResponseNorm": 3.5,
            "torch.nn.MaxPool3d": 9.0,
            "torch.nn.PixelShuffle": 4.3,
            "torch.nn.PixelUnshuffle": 2.8,
            "torch.nn.RNN": 16.0,
            "torch.nn.ReplicationPad1d": 2.8,
            "torch.nn.Softsign": 2.6,
            "torch.nn.Unfold": 2.3,
            "torch.nn.Upsample": 4.8,
            "torch.nn.UpsamplingBilinear2d": 4.0,
            "torch.nn.ZeroPad1d": 3.4,
            "torch.nn.ZeroPad2d": 5.3,
            "torch.nn.functional.adaptive_avg_pool1d": 4.6,
            "torch.nn.functional.adaptive_avg_pool2d": 12.0,
            "torch.nn.functional.adaptive_avg_pool3d": 5.3,
            "torch.nn.functional.adaptive_max_pool3d": 12.0,
            "torch.nn.functional.avg_pool3d": 7.0,
            "torch.nn.functional.bilinear": 24.0,
            "torch.nn.functional.celu": 3.0,
            "torch.nn.functional.embedding_bag": 48.0,
            "torch.nn.functional.grid_sample": 7.3,
            "torch.nn.functional.interpolate": 4.5,
            "torch.nn.functional.local_response_norm": 4.0,
            "torch.nn.functional.lp_pool3d": 4.7,
            "torch.nn.functional.max_pool3d": 19.0,
            "torch.nn.functional.pixel_shuffle": 3.5,
            "torch.nn.functional.pixel_unshuffle": 3.2,
            "torch.nn.functional.scaled_dot_product_attention": 7.0,
            "torch.nn.functional.softsign": 2.6,
            "torch.quantile": 18.0,
            "torch.sinc": 18.0,
            "torch.sinh": 3.0,
            "torch.sort": 15.0,
            "torch.special.airy_ai": 31.0,
            "torch.special.bessel_j0": 2.8,
            "torch.special.bessel_j1": 5.3,
            "torch.special.bessel_y0": 2.6,
            "torch.special.bessel_y1": 2.9,
            "torch.special.chebyshev_polynomial_u": 2.5,
            "torch.special.erfcx": 4.9,
            "torch.special.i0e": 19.0,
            "torch.special.i1": 10.0,
            "torch.special.i1e": 2.3,
            "torch.special.laguerre_polynomial_l": 2.7,
            "torch.special.legendre_polynomial_p": 2.7,
            "torch.special.log_ndtr": 17.0,
            "torch.special.modified_bessel_i0": 21.0,
            "torch.special.modified_bessel_i1": 19.0,
            "torch.special.modified_bessel_k0": 8.8,
            "torch.special.modified_bessel_k1": 8.1,
            "torch.special.scaled_modified_bessel_k0": 8.6,
            "torch.special.scaled_modified_bessel_k1": 8.4,
            "torch.special.spherical_bessel_j0": 5.7,
            "torch.special.xlog1py": 11.0,
            "torch.special.zeta": 78.0,
            "torch.std_mean": 23.0,
            "torch.topk": 13.0,
            "torch.trunc": 7.5,
            "torch.var": 23.0,
            "torch.var_mean": 25.0,
            "torch.xlogy": 3.6,
        }
    ),
)
"""Two cores of a server, torch 2.13. glibc maps blocks of 32 MiB and more anew in every call, which takes
several times as long as the work on them and varies from machine to machine: no tensor is that large."""

H200 = DeviceProfile(
    name="h200",
    copy_bytes_per_second=4.3e12,
    matmul_flops_per_second=43e12,
    launch_seconds=5e-6,
    tensor_bytes_max=4 * GIB,
    input_bytes_max=4 * GIB,
    peak_bytes_max=12 * GIB,
    slowdowns=MappingProxyType(
        {
            "_log_softmax": 1.6,
            "_softmax": 2.0,
            "adaptive_max_pool2d": 7.0,
            "avg_pool2d": 2.3,
            "convolution": 0.5,
            "grouped_convolution": 5.5,
            "linalg_vector_norm": 2.5,
            "log_sigmoid_forward": 0.67,
            "logsumexp": 7.5,
            "max_pool2d_with_indices": 1.4,
            "native_batch_norm": 3.0,
            "native_group_norm": 3.0,
            "native_layer_norm": 2.2,
            "std": 1.4,
            "torch.einsum": 1.3,
            "torch.nn.InstanceNorm1d": 8.0,
            "torch.nn.RMSNorm": 0.45,
        }
    ),
)
"""NVIDIA H200, torch 2.11; TF32 in convolutions, not in matrix products, as torch has it by default."""

PROFILES: Mapping[str, DeviceProfile] = MappingProxyType({profile.name: profile for profile in (CPU, H200)})


def profile_for(setting: str, device: str) -> DeviceProfile:
    """Return the profile of that name; `auto` picks by the type of the device (`cpu` or `cuda`)."""
    return PROFILES[setting] if setting != "auto" else H200 if device.startswith("cuda") else CPU
