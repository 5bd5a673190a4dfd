"""How candidates are composed: section `[composer]` of the settings."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

FloatType = Literal["float32", "bfloat16", "float16"]

DTYPE_SHARES: Mapping[FloatType, float] = MappingProxyType({"float32": 0.9, "bfloat16": 0.1})
"""Nine in ten as in Ops-6K, which has float32 only."""


class ComposerSettings(BaseModel):
    """Section `[composer]` of the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    composer: Literal["rules"] = Field("rules", description="Who writes the layers.")
    profile: Literal["auto", "cpu", "h200"] = Field(
        "auto",
        description="Device that sizes are solved for; auto: h200 where candidates run on CUDA, else cpu.",
    )
    dtypes: dict[FloatType, float] = Field(
        default=dict(DTYPE_SHARES),
        description="Floating types of inputs and parameters, with their shares of the layers.",
        min_length=1,
    )
