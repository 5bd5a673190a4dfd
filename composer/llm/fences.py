"""The fenced blocks of a Markdown text."""

import re
from dataclasses import dataclass

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([^`\n]*)$")
_TOKEN = re.compile(
    r"""#[^\n]*|\"\"\"|'''|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?""",
)
_DATA = ("json", "jsonc")
_PYTHON = ("", "python", "py", "python3", "pytorch")


@dataclass(frozen=True, slots=True)
class Block:
    """One block: what stands behind its opening fence, and its text."""

    language: str
    text: str

    @property
    def may_be_python(self) -> bool:
        """Whether the block is marked as Python or not at all."""
        return self.language in _PYTHON

    @property
    def is_data(self) -> bool:
        """Whether the block may hold JSON."""
        return self.language in (*_DATA, "")


def blocks_of(text: str) -> list[Block]:
    """Return the blocks in order; a last one that is never closed counts too.

    Lines end at line feeds only: other separators of Unicode are legal inside Python's comments. A fence
    inside a triple-quoted string, such as an example in a docstring, closes nothing.
    """
    blocks = []
    lines = text.split("\n")
    place = 0
    while place < len(lines):
        opening = _FENCE.match(lines[place].rstrip("\r"))
        place += 1
        if opening is None:
            continue
        end = _end(lines, place, opening.group(1))
        words = opening.group(2).split()
        body = _dedented(lines[place:end], len(lines[place - 1]) - len(lines[place - 1].lstrip()))
        blocks.append(Block(words[0].lower() if words else "", "".join(f"{line}\n" for line in body)))
        place = end + 1
    return blocks


def _end(lines: list[str], start: int, fence: str) -> int:
    """Return the line of the fence that closes a block: the first outside strings, else the first at all."""
    quote = ""
    first = len(lines)
    for place in range(start, len(lines)):
        found = _FENCE.match(lines[place].rstrip("\r"))
        if found and found.group(1).startswith(fence) and not found.group(2).strip():
            if not quote:
                return place
            first = min(first, place)
        quote = _open_quote(lines[place], quote)
    return first


def _open_quote(line: str, quote: str) -> str:
    """Return which triple quote is open after a line, given which one is before it."""
    place = 0
    while True:
        if quote:
            end = line.find(quote, place)
            if end < 0:
                return quote
            quote, place = "", end + 3
            continue
        token = _TOKEN.search(line, place)
        if token is None:
            return ""
        quote = token.group() if token.group() in ('"""', "'''") else ""
        place = token.end()


def _dedented(lines: list[str], indentation: int) -> list[str]:
    """Take off the indentation of the fence, as of a block inside a list, where all lines have it."""
    if all(not line[:indentation].strip() for line in lines):
        return [line[indentation:] for line in lines]
    return lines
