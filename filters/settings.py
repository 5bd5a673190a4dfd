"""How candidates are run: device, parallelism and limits. None of it changes what a good task is."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class FilterSettings(BaseModel):
    """Section `[filters]` of the settings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="Where candidates run.")
    workers: int = Field(
        0, ge=0, description="Candidates run at once; 0: one per core, at most 16, or 8 a GPU."
    )
    candidates_per_worker: int = Field(
        32,
        ge=1,
        description="Candidates of our own making that one process on a GPU runs, one after the other; 1 "
        "gives each its own, as every foreign candidate has.",
    )
    memory_gib: float | None = Field(
        None,
        gt=0,
        description="Main memory that one candidate may add, in GiB; unset: 2 on a CPU, 12 with a GPU.",
    )
    build_seconds: float = Field(60, gt=0, description="Limit of each stage up to and including labels.")
    timing_seconds: float = Field(60, gt=0, description="Limit of the timing.")
    compile_seconds: float = Field(120, gt=0, description="Limit of torch.compile and its comparison.")
    compile_backend: Literal["inductor", "aot_eager"] = Field(
        "inductor", description="Backend of torch.compile; `aot_eager` only for quick tests of the pipeline."
    )
    sandbox: Literal["auto", "bubblewrap", "namespaces", "landlock", "none"] = Field(
        "auto", description="What confines the workers; `auto` takes the first of the others that works here."
    )
