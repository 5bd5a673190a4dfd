"""What the settings for a model mean for a run. Needs no openai, so that every command can read settings."""

from collections.abc import Mapping
from typing import Any

from composer.llm.costs import BATCH_DISCOUNT
from composer.llm.local import local_settings
from composer.llm.prompt_file import prompt_version
from composer.llm.settings import LlmSettings, Price
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


def price_of(settings: LlmSettings) -> Price | None:
    """Return the price of the model as it is asked. Raises UsageError where a limit needs one."""
    model = model_of(settings)
    price = settings.prices.get(model)
    if price is None and settings.max_cost is not None:
        raise UsageError(
            f'max_cost needs a price: add [llm.prices."{model}"] with input and output, '
            "in dollars per million tokens, to the settings"
        )
    if price and settings.batch:
        return Price(input=price.input * BATCH_DISCOUNT, output=price.output * BATCH_DISCOUNT)
    return price


def require_fitting(options: Mapping[str, Any], *, composes: bool) -> None:
    """Raise UsageError for an option, by the key of `[llm]` that it sets, that would do nothing."""
    names = {key: "--llm" if key == "server" else f"--{key.replace('_', '-')}" for key in options}
    if options and not composes:
        raise UsageError(f"{next(iter(names.values()))}: only a model needs it; give --composer llm as well")
    if options.get("server") != "local":
        return
    for key in ("model", "batch", "mode"):
        if options.get(key, "plan") != "plan":
            raise UsageError(
                f"{names[key]}: --llm local has one model, which only fills in plans; leave it out"
            )


def identity(settings: LlmSettings) -> dict[str, Any]:
    """Return what makes the requests of a run what they are. Raises UsageError."""
    model_of(settings)
    asked = effective(settings).model_dump(
        mode="json", exclude=set(NOT_PART_OF_THE_RESULT), exclude_none=True
    )
    return {"llm": {**asked, "prompt_version": prompt_version()}}
