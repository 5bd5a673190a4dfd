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
