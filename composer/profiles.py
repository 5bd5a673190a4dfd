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
    input_bytes_max: int
    peak_bytes_max: int
    slowdowns: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Time of an aten operator relative to the figures above, measured."""

    def seconds(self, aten_name: str, bytes_moved: int, flops: int) -> float:
        """Return the predicted time of one aten call."""
        roofline = max(bytes_moved / self.copy_bytes_per_second, flops / self.matmul_flops_per_second)
        return roofline * self.slowdowns.get(aten_name, 1.0) + self.launch_seconds


CPU = DeviceProfile(
    name="cpu",
    copy_bytes_per_second=10e9,
    matmul_flops_per_second=100e9,
    launch_seconds=5e-6,
    input_bytes_max=1 * GIB,
    peak_bytes_max=1 * GIB,
)
"""Two cores of a server, float32."""

H200 = DeviceProfile(
    name="h200",
    copy_bytes_per_second=4.3e12,
    matmul_flops_per_second=50e12,
    launch_seconds=5e-6,
    input_bytes_max=4 * GIB,
    peak_bytes_max=12 * GIB,
)
"""NVIDIA H200."""

PROFILES: Mapping[str, DeviceProfile] = MappingProxyType({profile.name: profile for profile in (CPU, H200)})


def profile_for(setting: str, device: str) -> DeviceProfile:
    """Return the profile of that name; `auto` picks by the type of the device (`cpu` or `cuda`)."""
    return PROFILES[setting] if setting != "auto" else H200 if device.startswith("cuda") else CPU
