"""The machine and the versions under which a measurement holds."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What a measured time or bit depends on besides the candidate itself."""

    device_name: str
    driver_version: str | None
    cuda_version: str | None
    torch_version: str
    transformers_version: str | None
    tf32_matmul: bool
    tf32_cudnn: bool
    compile_backend: str
    threads: int
    """Threads that torch uses on the CPU."""

    @property
    def key(self) -> str:
        """16 hex digits that change with any of the fields."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Environment":
        """Build from what `dataclasses.asdict` gave."""
        return cls(**values)
