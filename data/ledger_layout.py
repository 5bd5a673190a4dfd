"""The tables of a ledger, and how a record is written in them."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from composer.candidate import Candidate
from data.ledger_errors import LedgerError
from filters.reasons import Reason, Stage
from filters.verdict import Verdict

APPLICATION_ID = 0x4F705776  # "OpWv", tells a ledger from any other SQLite file
LAYOUT = 3
EARLIER_LAYOUTS = (2,)
"""Lack only tables that can be filled again."""
TABLES = """
CREATE TABLE IF NOT EXISTS identity (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS candidates (place INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS measurements (
    id TEXT NOT NULL, environment TEXT NOT NULL, lost INTEGER NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (id, environment)
);
CREATE TABLE IF NOT EXISTS judged (
    id TEXT NOT NULL, environment TEXT NOT NULL, basis TEXT NOT NULL, verdict TEXT NOT NULL,
    family TEXT NOT NULL, signature TEXT NOT NULL, sequence BLOB NOT NULL, PRIMARY KEY (id, environment)
);
CREATE TABLE IF NOT EXISTS verdicts (place INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS replies (
    request TEXT NOT NULL, draw INTEGER NOT NULL, body BLOB NOT NULL, reply BLOB NOT NULL,
    base_url TEXT NOT NULL, PRIMARY KEY (request, draw)
);
"""
TABLE_NAMES = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", TABLES)
ADDED_SINCE = {"judged"}
"""Tables that no earlier layout has."""


DAMAGED = "it is damaged; restore it from a copy or start a new run directory"


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Create the tables of a new file, inside a transaction; add what an earlier layout lacks.

    Raises LedgerError for a file that is not ours, which stays untouched.
    """
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    (layout,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if not tables:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    elif owner != APPLICATION_ID:
        raise LedgerError(f"{path}: an SQLite file of another program; choose another run directory")
    elif layout not in (LAYOUT, *EARLIER_LAYOUTS):
        raise LedgerError(
            f"{path}: written in layout {layout}, this version reads {LAYOUT}; "
            "use the version that wrote it or start a new run directory"
        )
    elif missing := set(TABLE_NAMES) - tables - (ADDED_SINCE if layout != LAYOUT else set()):
        raise LedgerError(f"{path}: lacks {', '.join(sorted(missing))}; {DAMAGED}")
    if layout != LAYOUT:
        for statement in TABLES.split(";")[:-1]:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {LAYOUT}")


class JudgedRecord(NamedTuple):
    """What a candidate was judged to be by itself, and what of it is compared with the rest of the set."""

    id: str
    environment: str
    """Key of the environment that it was measured in."""
    basis: str
    """Digest of all that the verdict depends on besides the measurement."""
    verdict: str
    family: str
    """Empty where nothing is compared."""
    signature: str
    """One operator a line."""
    sequence: bytes
    """Four bytes for each token."""


def dumps(value: Any) -> str:
    """Return a value as ASCII JSON, equal for equal values."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True)


def candidate_from(text: str) -> Candidate:
    """Read a stored candidate."""
    fields = json.loads(text)
    return Candidate(**fields | {name: tuple(fields[name]) for name in ("requested_ops", "earlier_ids")})


def verdict_text(verdict: Verdict) -> str:
    """Return a verdict as `verdict_from` reads it."""
    return dumps({name: getattr(verdict, name) for name in Verdict.__slots__})


def verdict_from(text: str) -> Verdict:
    """Read a stored verdict."""
    fields = json.loads(text)
    stage = fields["stage"] and Stage(fields["stage"])
    return Verdict(**fields | {"reason": Reason(fields["reason"]), "stage": stage})
