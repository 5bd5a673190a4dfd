"""How a language model is asked: section `[llm]` of the settings."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Mode = Literal["code", "plan", "free"]


class Price(BaseModel):
    """What a model costs, in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0, description="Tokens of the prompt.")
    output: float = Field(ge=0, description="Tokens of the reply, reasoning included.")


class LlmSettings(BaseModel):
    """Section `[llm]` of the settings. The key is read from `OPENAI_API_KEY` and never written anywhere."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    server: Literal["openai", "local"] = Field(
        "openai",
        description="Where replies come from: any OpenAI-compatible endpoint, or a small model run here "
        "(`opweaver llm install`).",
    )
    model: str | None = Field(None, description="Name of the model, as its server knows it.")
    base_url: str | None = Field(
        None, description="Address of the endpoint, up to `/v1`; unset: `OPENAI_BASE_URL`, else OpenAI's."
    )
    mode: Mode = Field(
        "code",
        description="`code`: the model writes the task for given operators. `plan`: it fills in a JSON "
        "schema and the code is ours. `free`: it chooses the operators too.",
    )
    concurrency: int = Field(32, ge=1, description="Requests under way at once, at most.")
    request_seconds: float = Field(
        300, gt=0, description="Limit of one request with all its attempts and waits."
    )
    max_tokens: int = Field(4096, ge=0, description="Longest reply, in tokens; 0: the server's own limit.")
    temperature: float | None = Field(None, ge=0, description="Unset: the server's own.")
    send_seed: bool = Field(True, description="Send a seed with each request; some servers refuse one.")
    extra: dict[str, Any] = Field(
        {},
        description="Further fields of each request, such as `reasoning_effort`, as the server takes them.",
    )
    repair_turns: int = Field(2, ge=0, le=2, description="Times that a model may correct one task.")
    max_cost: float | None = Field(
        None, gt=0, description="Stop before the run has cost more, in US dollars; needs a price."
    )
    prices: dict[str, Price] = Field({}, description="Prices by name of the model.")
    batch: bool = Field(False, description="Ask through the Batch API: half the price, within 24 hours.")
