"""How candidates are composed: section `[composer]` of the settings."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from composer.profiles import BUILT_IN, DeviceProfile, profile_from, read_profile

FloatType = Literal["float32", "bfloat16", "float16"]

DTYPE_SHARES: Mapping[FloatType, float] = MappingProxyType({"float32": 0.9, "bfloat16": 0.1})
"""Nine in ten as in Ops-6K, which has float32 only."""


class ComposerSettings(BaseModel):
    """Section `[composer]` of the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    composer: Literal["rules", "llm"] = Field(
        "rules", description="Who writes the layers: our rules, or a language model (section `[llm]`)."
    )
    profile: Literal["auto", "cpu", "h200"] | DeviceProfile = Field(
        "auto",
        description="Device that sizes are solved for; auto: h200 where candidates run on CUDA, else cpu. Or "
        "the path of a file from `opweaver doctor --profile`, whose figures then stand here in its place.",
    )
    easy_share: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of candidates that are a single element-wise operator or reduction; the others "
        "have as many operators as the rows of arXiv 2602.24286, table 3.",
    )
    layers_share: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of candidates that are layers lifted from transformers, as long as there are new "
        "ones, with the composer `rules`; needs `transformers` among the sources.",
    )
    dtypes: dict[FloatType, float] = Field(
        default=dict(DTYPE_SHARES),
        description="Floating types of inputs and parameters, with their shares of the layers.",
        min_length=1,
    )

    @field_validator("layers_share")
    @classmethod
    def _with_rules_alone(cls, value: float, others: ValidationInfo) -> float:
        if value and others.data.get("composer") == "llm":
            raise ValueError(f"{value:g} goes with the composer rules, not llm; leave it out or at 0")
        return value

    @field_validator("profile", mode="before")
    @classmethod
    def _with_figures(cls, value: Any) -> Any:
        """Take the figures in, so that the settings as used say it all."""
        if isinstance(value, DeviceProfile) or value in ("auto", *BUILT_IN):
            return value
        if isinstance(value, Mapping):
            return profile_from(value)
        if isinstance(value, str):
            return read_profile(Path(value))
        raise ValueError(f"{value!r} is no profile; give auto, {', '.join(BUILT_IN)} or the path of a file")
