"""What counts as a good task: every threshold, with its unit and source."""

from pydantic import BaseModel, ConfigDict, Field


class Policy(BaseModel):
    """Thresholds of the judging. Changing one needs no new measurement (`opweaver judge`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source_kib_max: int = Field(32, description="Largest source text, in KiB.")
    kb_similarity_max: float = Field(
        0.9,
        description="Highest allowed AST similarity to a KernelBench task (arXiv 2602.24286, section 3.1).",
    )
    input_gib_max: float = Field(4.0, description="Largest sum of the input tensors, in GiB.")
    peak_memory_gib_max: float = Field(16.0, description="Largest memory in use over one forward, in GiB.")
    trivial_atol: float = Field(
        1e-2,
        description="Tolerance (absolute and relative) at which a trivial answer must fail; the one of "
        "CUDA-Agent's verifier.",
    )
    inert_parameter_share_max: float = Field(
        0.01, description="A parameter with at least this share of all elements must have an effect."
    )
    ops_max: int = Field(5, description="Most operators of a composed layer (arXiv 2602.24286, section 3.1).")
    aten_nodes_max: int = Field(2000, description="Most aten calls of a layer lifted from transformers.")
    eager_ms_min: float = Field(
        1.0, description="Lower bound of the median eager time in ms (arXiv 2602.24286, section 3.1)."
    )
    eager_ms_max: float = Field(
        100.0, description="Upper bound of the median eager time in ms (arXiv 2602.24286, section 3.1)."
    )
    tensor_time_share_min: float = Field(
        0.5, description="Least share of a forward's time that is tensor work; below it the task is padded."
    )
    eager_error_max: float = Field(
        1e-2, description="Largest relative RMSE of eager against fp64; above it the task is ill-conditioned."
    )
    compiled_error_ratio: float = Field(
        2.0,
        description="Compiled error against fp64 may be this many times eager's (torch._dynamo.utils.same).",
    )
    compiled_error_ratio_half: float = Field(3.0, description="The same where a half type takes part.")
