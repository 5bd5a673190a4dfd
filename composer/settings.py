"""How candidates are composed: section `[composer]` of the settings."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ComposerSettings(BaseModel):
    """Section `[composer]` of the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    composer: Literal["rules", "llm"] = Field(
        "rules", description="Who writes the layers: our rules, or a language model (section `[llm]`)."
    )
    profile: Literal["auto", "cpu", "h200"] = Field(
        "auto",
        description="Device that sizes are solved for; auto: h200 where candidates run on CUDA, else cpu.",
    )
