"""From (seed, index, operators, profile, model, mode) to one request; nothing else decides what is sent.

All texts stand in `prompt.md`.
"""

import json
import re
from collections.abc import Sequence
from string import Template

from composer.llm.assignment import Assignment
from composer.llm.layer_plan import example_of, schema_of, usable, wirings
from composer.llm.prompt_file import parts
from composer.llm.requests import Request
from composer.llm.settings import LlmSettings
from composer.profiles import DeviceProfile
from composer.sizes import FASTEST, SLOWEST
from ops_crawler.operator import Operator

SUGGESTED = 12
"""Operators that the mode `free` mentions."""

_NOTES_MAX = 400
"""Characters of a docstring's summary or text on shapes."""

_SUMMARY_MAX = 120
"""Characters of the summary where the arguments are given by a schema."""


class Prompt:
    """Writes the first request for every index."""

    def __init__(
        self,
        operators: Sequence[Operator],
        profile: DeviceProfile,
        settings: LlmSettings,
        model: str,
        seed: int,
    ) -> None:
        self.settings = settings
        self.model = model
        if settings.mode == "plan":
            self.assignment = Assignment(usable(operators), seed, lambda chosen: bool(wirings(tuple(chosen))))
        else:
            self.assignment = Assignment(operators, seed)
        system = "plan_system" if settings.mode == "plan" else "system"
        self._system = Template(parts()[system]).substitute(_budget(profile))

    def operators(self, index: int) -> list[Operator]:
        """Return what the task of this index must consist of; in mode `free` what is suggested."""
        if self.settings.mode == "free":
            return self.assignment.operators(index, SUGGESTED)
        return self.assignment.operators(index)

    def request(self, index: int) -> Request:
        """Return the first request for an index."""
        operators = self.operators(index)
        rng = self.assignment.rng(f"request/{index}")
        count = len(self.assignment.operators(index))
        user = Template(parts()[self.settings.mode]).substitute(
            count=count,
            category=operators[0].category,
            operators="\n".join(map(self._described, operators)),
            example=json.dumps(example_of(operators, rng)) if self.settings.mode == "plan" else "",
        )
        messages = [{"role": "system", "content": self._system}, {"role": "user", "content": user}]
        schema = ("layer", schema_of(operators)) if self.settings.mode == "plan" else None
        return Request.asking(self.settings, self.model, messages, rng.getrandbits(31), schema)

    def _described(self, operator: Operator) -> str:
        if self.settings.mode == "code":
            return described(operator)
        summary = f": {_one_line(operator.summary)[:_SUMMARY_MAX]}" if self.settings.mode == "plan" else ""
        return f"- {operator.name}{summary}"


def described(operator: Operator) -> str:
    """Return a paragraph on one operator: how it is called, what it does, which shapes it takes."""
    signature = operator.signature if operator.signature != "unknown" else ""
    signature = re.sub(r",? ?(device|dtype)=None", "", signature).removesuffix(" -> None")
    lines = [f"- `{operator.name}{signature}`: {_one_line(operator.summary)[:_NOTES_MAX]}"]
    if operator.shape_notes:
        lines.append(f"  Shapes: {_one_line(operator.shape_notes)[:_NOTES_MAX]}")
    if operator.witness:
        lines.append(f"  It was called on shapes {_shapes(operator.witness.input_shapes)} and gave "
                     f"{_shapes(operator.witness.output_shapes)}.")  # fmt: skip
    return "\n".join(lines)


def _shapes(shapes: Sequence[Sequence[int]]) -> str:
    return ", ".join(str(tuple(shape)) for shape in shapes)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _budget(profile: DeviceProfile) -> dict[str, str]:
    """Return the figures of the device that the prompt names."""
    by_time = (FASTEST * SLOWEST) ** 0.5 * profile.copy_bytes_per_second / 8
    elements = min(by_time, profile.tensor_bytes_max / 4 / 2)
    return {
        "low_ms": f"{FASTEST * 1e3:.3g}",
        "high_ms": f"{SLOWEST * 1e3:.3g}",
        "gigabyte_ms": f"{profile.seconds('', 10**9, 0) * 1e3:.2g}",
        "teraflop_ms": f"{profile.seconds('', 0, 10**12) * 1e3:.2g}",
        "elements": f"{elements / 1e6:,.0f} million",
        "tensor_mb": f"{profile.tensor_bytes_max / 1e6:,.0f}",
        "inputs_mb": f"{profile.input_bytes_max / 1e6:,.0f}",
    }
