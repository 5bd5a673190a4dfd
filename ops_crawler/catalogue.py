"""The frozen catalogue: what one version of torch offered, with executed example calls.

`python -m ops_crawler.build_catalogue` writes it; reading it needs neither torch's private modules nor
torch. Another torch is crawled as it is, and `differences` says in what it differs.
"""

import gzip
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from ops_crawler.operator import Kind, Operator, Witness, witness_from

FILE = Path(__file__).with_name("catalogue.json.gz")
LAYOUT = 1
"""Version of the file's layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What is frozen of one operator of torch."""

    kind: Kind
    signature: str
    set_aside: str | None
    witness: Witness | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All operators of one version of torch, by name."""

    torch_version: str
    entries: dict[str, Entry]


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Names in which a crawl differs from the frozen catalogue, sorted."""

    new: tuple[str, ...]
    gone: tuple[str, ...]
    changed: tuple[str, ...]
    """Of another kind or signature, or set aside for another reason."""

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changed)


@cache
def frozen() -> Catalogue:
    """Return the catalogue that comes with this version."""
    stored = json.loads(gzip.decompress(FILE.read_bytes()))
    return Catalogue(
        torch_version=stored["torch_version"],
        entries={name: _entry(fields) for name, fields in stored["operators"].items()},
    )


def freeze(operators: Iterable[Operator], torch_version: str) -> bytes:
    """Return the file for these operators; the same operators give the same bytes."""
    entries = {
        operator.name: {
            "kind": operator.kind,
            "signature": operator.signature,
            "set_aside": operator.set_aside,
            "witness": asdict(operator.witness) if operator.witness else None,
        }
        for operator in operators
    }
    stored = {"layout": LAYOUT, "torch_version": torch_version, "operators": entries}
    text = json.dumps(stored, sort_keys=True, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def with_witnesses(operators: Iterable[Operator]) -> list[Operator]:
    """Return torch's operators with the frozen example calls, where they are called as they were then."""
    entries = frozen().entries
    return [
        replace(operator, witness=entries[operator.name].witness)
        if operator.name in entries and _same_call(operator, entries[operator.name])
        else operator
        for operator in operators
    ]


def differences(operators: Sequence[Operator]) -> Differences:
    """Compare a crawl of torch with the frozen catalogue."""
    entries = frozen().entries
    found = {operator.name: operator for operator in operators}
    return Differences(
        new=tuple(sorted(found.keys() - entries.keys())),
        gone=tuple(sorted(entries.keys() - found.keys())),
        changed=tuple(sorted(n for n in found.keys() & entries.keys() if _differs(found[n], entries[n]))),
    )


def _same_call(operator: Operator, entry: Entry) -> bool:
    return (operator.kind, operator.signature) == (entry.kind, entry.signature)


def _differs(operator: Operator, entry: Entry) -> bool:
    return not _same_call(operator, entry) or operator.set_aside != entry.set_aside


def _entry(fields: dict[str, Any]) -> Entry:
    witness = fields.pop("witness")
    return Entry(**fields, witness=witness_from(witness) if witness else None)
