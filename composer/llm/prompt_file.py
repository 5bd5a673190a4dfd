"""The file with everything that a model is told; its version is part of every row's provenance."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template

FILE = Path(__file__).with_name("prompt.md")


@cache
def parts() -> Mapping[str, str]:
    """Return the parts of the prompt file by name, the version among them."""
    text = FILE.read_text(encoding="utf-8")
    head, *sections = re.split(r"^## (\w+)\n", text, flags=re.MULTILINE)
    found = {name: body.strip() for name, body in zip(sections[::2], sections[1::2], strict=True)}
    return {"version": head.splitlines()[0].removeprefix("version:").strip(), **found}


def prompt_version() -> str:
    """Return the version of the prompt file."""
    return parts()["version"]


def objection_text(objection: str) -> str:
    """Return what the model is told of a task that was not accepted."""
    return Template(parts()["repair"]).substitute(objection=objection)
