"""How candidates are composed: section `[composer]` of the settings."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ComposerSettings(BaseModel):
    """Section `[composer]` of the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    composer: Literal["rules"] = Field("rules", description="Who writes the layers.")
    profile: Literal["auto", "cpu", "h200"] = Field(
        "auto",
        description="Device that sizes are solved for; auto: h200 where candidates run on CUDA, else cpu.",
    )
    layers_share: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of candidates that are layers lifted from transformers, as long as there are new "
        "ones; needs `transformers` among the sources.",
    )
