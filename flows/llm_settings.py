"""What the settings for a model mean for a run. Needs no openai, so that every command can read settings."""

from typing import Any

from composer.llm.local import local_settings
from composer.llm.prompt_file import prompt_version
from composer.llm.settings import LlmSettings
from flows.errors import UsageError

NOT_PART_OF_THE_RESULT = frozenset(
    {"base_url", "concurrency", "request_seconds", "max_cost", "prices", "batch"}
)
"""Settings that decide how replies are come by, not what they are replies to."""


def effective(settings: LlmSettings) -> LlmSettings:
    """Return the settings with what the local model needs, where that one is asked."""
    return local_settings(settings) if settings.server == "local" else settings


def model_of(settings: LlmSettings) -> str:
    """Return the model's name. Raises UsageError."""
    model = effective(settings).model
    if not model:
        raise UsageError("no model: give --model NAME, or --llm local for the small one that runs here")
    return model


def identity(settings: LlmSettings) -> dict[str, Any]:
    """Return what makes the requests of a run what they are. Raises UsageError."""
    model_of(settings)
    asked = effective(settings).model_dump(
        mode="json", exclude=set(NOT_PART_OF_THE_RESULT), exclude_none=True
    )
    return {"llm": {**asked, "prompt_version": prompt_version()}}
