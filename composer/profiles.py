"""What devices can do: the few figures from which eager times are predicted.

The figures of a CPU and of an H200 lie in `composer/device_profiles/`, written by `opweaver doctor --profile`
on such a machine; `[composer] profile` takes the path of another such file.
"""

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import tomli_w

GIB = 2**30
BUILT_IN = ("cpu", "h200")
"""Names of the profiles that come with OpWeaver."""

_FOLDER = Path(__file__).parent / "device_profiles"


class ProfileError(ValueError):
    """A profile cannot be read. The text is one line; raised by `read_profile` and `profile_from`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProfile:
    """Speeds and limits of one kind of device. Frozen with a run: candidates depend on it."""

    name: str
    copy_bytes_per_second: float
    """Bytes read and written by a large element-wise float32 operator, per second."""
    launch_seconds: float
    """Fixed cost of one aten call."""
    tensor_bytes_max: int
    """Largest single tensor, intermediates included."""
    input_bytes_max: int
    peak_bytes_max: int
    matmul_flops_per_second: Mapping[str, float]
    """Of a large matrix product as torch computes it by default, by dtype; what is missing is as float32."""
    dtype_slowdowns: Mapping[str, float] = field(default_factory=dict)
    """Measured time of an element-wise operator per byte relative to float32, by dtype; 1 where missing."""
    slowdowns: Mapping[str, float] = field(default_factory=dict)
    """Measured time relative to the figures above: of an aten operator, or of all calls of a public one."""

    def seconds(self, aten_name: str, bytes_moved: int, flops: int, dtype: str = "float32") -> float:
        """Return the predicted time of one aten call."""
        rate = self.matmul_flops_per_second.get(dtype, self.matmul_flops_per_second["float32"])
        by_bytes = bytes_moved / self.copy_bytes_per_second * self.dtype_slowdowns.get(dtype, 1.0)
        return max(by_bytes, flops / rate) * self.slowdowns.get(aten_name, 1.0) + self.launch_seconds

    @property
    def digest(self) -> str:
        """Name and 12 hex digits that change with any of the figures."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return f"{self.name} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def read_profile(path: Path) -> DeviceProfile:
    """Read a profile that `opweaver doctor --profile` wrote. Raises ProfileError."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except ValueError as error:
        raise ProfileError(f"{path}: no valid TOML ({error}); correct the file") from None
    try:
        return profile_from(table)
    except ProfileError as error:
        raise ProfileError(f"{path}: {error}") from None


def profile_from(table: Mapping[str, Any]) -> DeviceProfile:
    """Build a profile from the table that stands in its file. Raises ProfileError naming a wrong key."""
    fields = {entry.name: entry for entry in dataclasses.fields(DeviceProfile)}
    if unknown := sorted(table.keys() - fields.keys()):
        raise ProfileError(f"unknown key `{unknown[0]}`; known here: {', '.join(fields)}")
    if missing := [name for name in fields if name not in table]:
        raise ProfileError(f"lacks `{missing[0]}`; write the file again with `opweaver doctor --profile`")
    for name, value in table.items():
        figures = value.values() if isinstance(value, Mapping) else () if name == "name" else (value,)
        wants_table = fields[name].type == Mapping[str, float]
        if wants_table != isinstance(value, Mapping) or not all(map(_is_positive, figures)):
            wanted = "a table of numbers > 0" if wants_table else "a number > 0"
            raise ProfileError(f"`{name}` is {value!r}; give {wanted}")
    if "float32" not in table["matmul_flops_per_second"]:
        raise ProfileError("`matmul_flops_per_second` lacks `float32`")
    return DeviceProfile(**table)


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def profile_text(profile: DeviceProfile) -> str:
    """Return the profile as TOML, fit for `read_profile`."""
    return tomli_w.dumps(dataclasses.asdict(profile))


@cache
def built_in(name: str) -> DeviceProfile:
    """Return one of the profiles that come with OpWeaver."""
    return read_profile(_FOLDER / f"{name}.toml")


def profile_for(setting: str | DeviceProfile, device: str) -> DeviceProfile:
    """Return the profile that a setting names; `auto` picks by the type of the device (`cpu` or `cuda`)."""
    if isinstance(setting, DeviceProfile):
        return setting
    return built_in(("h200" if device.startswith("cuda") else "cpu") if setting == "auto" else setting)


CPU = built_in("cpu")
"""Two cores of a server. glibc maps blocks of 32 MiB and more anew in every call, which takes several times
as long as the work on them and varies from machine to machine: no tensor is that large."""

H200 = built_in("h200")
"""NVIDIA H200; TF32 in convolutions, not in matrix products, as torch has it by default."""
