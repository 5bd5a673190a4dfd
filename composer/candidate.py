"""A task that might become a row: source text and where it came from."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Origin = Literal["rules", "lifted", "foreign"]


def content_id(code: str) -> str:
    """Return the sha256 hex digest of the exact UTF-8 text; lone surrogates count as their escapes."""
    return hashlib.sha256(code.encode("utf-8", "backslashreplace")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One task to be judged. A pure function of (seed, index, catalogue, device profile) when composed.

    With `ladder_steps` where a measurement moved its sizes: see `flows.resizing`.
    """

    index: int
    """Place in the run or in the audited set, from 0; decides which of two equal tasks stays."""
    name: str
    """File stem, row number or id, as the user knows it."""
    code: str
    """Python module with `Model`, `get_inputs()` and `get_init_inputs()`."""
    requested_ops: tuple[str, ...] = ()
    """Operators that the composer was asked for, canonical names; empty if unknown."""
    data_source: str | None = None
    """`torch#K` or `transformers` as claimed by a set that is audited; None: derived from what ran."""
    composer: str | None = None
    """`rules`, `layers`, the model's name, or None for an audited row."""
    origin: Origin = "foreign"
    """`rules`: written by our own renderer. `lifted`: one of the frozen layers of transformers. `foreign`: by
    an LLM or by somebody else."""
    ladder_steps: int = 0
    """Steps of the ladder by which sizes were moved since, because a measurement missed the window of
    times."""
    earlier_ids: tuple[str, ...] = ()
    """Ids of the sizings of the same index that were measured before this one, in order."""
    predicted_ms: float | None = None
    """Eager time that the roofline predicts for the device of the run; null where sizes are not ours."""
    seed: int | None = None
    """Seed of the run that composed it."""
    request_hash: str | None = None
    """sha256 of the request that an LLM answered with it."""
    llm_mode: str | None = None
    """How the LLM was asked: `code`, `plan` or `free`; null for other composers."""
    prompt_version: str | None = None
    """Version of the prompt file that the LLM was asked with."""
    repair_turns: int | None = None
    """Times that the LLM corrected it; null for other composers."""
    size_edits: int = 0
    """Times that sizes in an LLM's text were changed since, because a measurement missed the limits."""
    reply_fault: str | None = None
    """Why the LLM's reply holds no task, such as `truncated`; `code` is then what was said instead."""
    source_license: str | None = None
    """Licence of the text, where it is known."""
    source_path: str | None = None
    """Where the text was taken from, such as a file of a library."""

    @cached_property
    def id(self) -> str:
        """sha256 of the exact code."""
        return content_id(self.code)
