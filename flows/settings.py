"""The settings of a run: one tree, read from a TOML file, then `OPWEAVER_*`, then the command's options.

Later ones win. A variable names its section with two underscores: `OPWEAVER_FILTERS__DEVICE=cuda`. The
settings as used are written next to the outputs (`settings.toml`) and can be given again with `--config`.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from composer.llm.settings import LlmSettings
from composer.settings import ComposerSettings
from filters.policy import Policy
from filters.settings import FilterSettings
from flows.errors import UsageError

DEFAULT_FILE = Path("opweaver.toml")
"""Read where no file is named and this one exists in the current directory."""
_PREFIX = "OPWEAVER_"


class RunSettings(BaseModel):
    """Section `[run]`: what is wanted, and where it goes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_dir: Path = Field(Path("runs/quickstart"), description="Folder of the run; made if it is missing.")
    count: int = Field(24, gt=0, description="Accepted rows wanted.")
    dataset: str | None = Field(
        None,
        description="A task set to measure, and to size for this device, in place of composing.",
    )
    seed: int = Field(0, ge=0, description="Decides, with the index, what every candidate is.")
    deadline_minutes: float | None = Field(
        None, gt=0, description="Stop after this time; the same command goes on later."
    )
    timings: Path | None = Field(
        None, description="A `verdicts.parquet` whose times replace live ones, for runs that must agree."
    )
    engine: Literal["local", "ray"] = Field(
        "local", description="Where shards of candidates are measured: on this machine, or on a Ray cluster."
    )
    address: str | None = Field(
        None,
        description="With engine ray: HOST:PORT of the head node, or auto; unset: the cluster that "
        "runs here, else one of this machine alone.",
    )
    mixed_devices: bool = Field(
        False, description="With engine ray: let nodes of several kinds measure one run."
    )
    unsafe: bool = Field(False, description="Run foreign code even where no sandbox is available.")


class Settings(BaseSettings):
    """All settings. Built from values alone; `load_settings` adds the file and the environment."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", env_prefix=_PREFIX, env_nested_delimiter="__"
    )

    sources: tuple[str, ...] = Field(
        ("torch",),
        min_length=1,
        description="Where operators come from: torch, transformers, a registered name, "
        "package.module:object, a folder.",
    )
    run: RunSettings = RunSettings()
    composer: ComposerSettings = ComposerSettings()
    llm: LlmSettings = LlmSettings()
    filters: FilterSettings = FilterSettings()
    policy: Policy = Policy()

    @classmethod
    def settings_customise_sources(  # type: ignore[override]
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, **others: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take nothing from anywhere but the given values."""
        return (init_settings,)


def load_settings(config: Path | None = None, options: Mapping[str, Any] | None = None) -> Settings:
    """Read file, environment and options. Raises UsageError with the place, the key and what is allowed."""
    if config is None and DEFAULT_FILE.is_file():
        config = DEFAULT_FILE
    layers = {
        "an option": dict(options or {}),
        "the environment": _from_environment(),
        str(config): _from_file(config) if config else {},
    }
    merged: dict[str, Any] = {}
    for values in reversed(layers.values()):
        merged = _merge(merged, values)
    try:
        return Settings(**merged)
    except ValidationError as error:
        raise UsageError(_explain(error.errors()[0], layers)) from None


def settings_text(settings: Settings) -> str:
    """Return the settings as TOML, fit for `load_settings`."""
    return tomli_w.dumps(settings.model_dump(mode="json", exclude_none=True))


def published_text(settings: Settings) -> str:
    """Return what others need to make the same run: the settings as TOML, without the user's own paths."""
    private = {"run": {"run_dir", "timings", "deadline_minutes", "address"}, "llm": {"base_url"}}
    shown = settings.model_dump(mode="json", exclude_none=True, exclude=private)
    shown["sources"] = [Path(source).name for source in settings.sources]
    if settings.run.dataset and Path(settings.run.dataset).exists():
        shown["run"]["dataset"] = Path(settings.run.dataset).name
    return tomli_w.dumps(shown)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except ValueError as error:
        raise UsageError(f"{path}: no valid TOML ({error}); correct the file") from None


def _from_environment() -> dict[str, Any]:
    """Return what `OPWEAVER_*` sets; a variable that fits no section is an error, not a wish ignored."""
    for variable in sorted(os.environ):
        section = variable.removeprefix(_PREFIX).split("__")[0].lower()
        if variable.startswith(_PREFIX) and section not in Settings.model_fields:
            raise UsageError(
                f"{variable}: unknown variable; the part after {_PREFIX} starts with one of: "
                + ", ".join(Settings.model_fields)
            )
    try:
        return EnvSettingsSource(Settings)()
    except SettingsError as error:
        cause = " ".join(str(error).split())
        raise UsageError(f'the environment: {cause}; give lists as JSON, such as ["torch"]') from None


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = _merge(below, value)
        merged[key] = value
    return merged


def _explain(error: ErrorDetails, layers: Mapping[str, Mapping[str, Any]]) -> str:
    """Put one validation error into a line: which layer set it, the key, what is allowed."""
    path = [str(part) for part in error["loc"]]
    where = next((name for name, values in layers.items() if _has(values, path)), "settings")
    key = ".".join(path)
    if error["type"] == "value_error":
        return f"{where}: `{key}`: {error['ctx']['error']}"
    if error["type"] == "extra_forbidden":
        known = ", ".join(_known_keys(path[:-1]))
        return f"{where}: unknown key `{key}`; known here: {known}"
    return f"{where}: `{key}` is {error['input']!r}; {_lower_first(error['msg'])}"


def _has(values: Any, path: list[str]) -> bool:
    for part in path:
        if isinstance(values, Mapping) and part in values:
            values = values[part]
        elif isinstance(values, list | tuple) and part.isdigit() and int(part) < len(values):
            values = values[int(part)]
        else:
            return False
    return True


def _known_keys(path: list[str]) -> list[str]:
    model: Any = Settings
    for part in path:
        model = model.model_fields[part].annotation
    return list(model.model_fields)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
