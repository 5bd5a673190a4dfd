"""The truth about a run's progress: one SQLite file that survives being killed at any moment.

Every call that writes is one transaction in WAL mode, so a `SIGKILL` loses at most the call that was
under way. `synchronous=NORMAL` is enough for that: only a power cut can take the last transactions.
Texts are stored as ASCII JSON, because SQLite refuses the lone surrogates that LLM replies contain.
"""

import dataclasses
import json
import re
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from composer.candidate import Candidate
from composer.llm.requests import Request
from data.errors import InputError
from data.ledger_errors import LedgerError, explained
from filters.measurement import Measurement
from filters.reasons import Reason, Stage
from filters.verdict import Verdict

_APPLICATION_ID = 0x4F705776  # "OpWv", tells a ledger from any other SQLite file
_LAYOUT = 2
_TABLES = """
CREATE TABLE identity (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE candidates (place INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE measurements (
    id TEXT NOT NULL, environment TEXT NOT NULL, lost INTEGER NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (id, environment)
);
CREATE TABLE verdicts (place INTEGER PRIMARY KEY, record TEXT NOT NULL);
CREATE TABLE replies (
    request TEXT NOT NULL, draw INTEGER NOT NULL, body BLOB NOT NULL, reply BLOB NOT NULL,
    base_url TEXT NOT NULL, PRIMARY KEY (request, draw)
);
"""
_TABLE_NAMES = re.findall(r"CREATE TABLE (\w+)", _TABLES)
_DAMAGED = "it is damaged; restore it from a copy or start a new run directory"


class Ledger:
    """Candidates, replies, measurements and verdicts of one run. One object may be shared by many threads."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path | str, *, create: bool = True, wait_seconds: float = 30.0) -> "Ledger":
        """Open the ledger of a run, with `create` also a new one.

        `wait_seconds` is how long to wait for another process that is writing.
        Raises InputError where there is no ledger and none may be made, LedgerError otherwise.
        """
        path = Path(path)
        if not create and not path.is_file():
            raise InputError(f"{path}: no ledger here; give the directory of a run that was started before")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerError(
                f"{path.parent}: cannot be created ({error.strerror}); choose another"
            ) from None
        with explained(path):
            connection = sqlite3.connect(
                path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
            )
        ledger = cls(path, connection)
        try:
            ledger._prepare()
        except BaseException:  # whatever it is, Ctrl-C too: nobody else knows the connection; raised again
            connection.close()
            raise
        return ledger

    def _prepare(self) -> None:
        """Create the tables of a new file, refuse a file that is not ours untouched, switch to WAL."""
        with self._transaction() as connection:
            (owner,) = connection.execute("PRAGMA application_id").fetchone()
            (layout,) = connection.execute("PRAGMA user_version").fetchone()
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if not tables:
                for statement in _TABLES.split(";")[:-1]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {_LAYOUT}")
            elif owner != _APPLICATION_ID:
                raise LedgerError(
                    f"{self.path}: an SQLite file of another program; choose another run directory"
                )
            elif layout != _LAYOUT:
                raise LedgerError(
                    f"{self.path}: written in layout {layout}, this version reads {_LAYOUT}; "
                    "use the version that wrote it or start a new run directory"
                )
            elif missing := set(_TABLE_NAMES) - tables:
                raise LedgerError(f"{self.path}: lacks {', '.join(sorted(missing))}; {_DAMAGED}")
        with explained(self.path):
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")

    def close(self) -> None:
        """Close the file; a closed ledger cannot be used again."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def claim_identity(self, identity: Mapping[str, Any]) -> None:
        """Record what makes this run what it is, or check it against what was recorded first.

        Values are anything that JSON can hold: seed, composer, catalogue hash and the like.
        Raises InputError naming every setting that differs.
        """
        wanted = {name: _dumps(value) for name, value in identity.items()}
        with self._transaction() as connection:
            stored = dict(connection.execute("SELECT name, value FROM identity"))
            if not stored:
                connection.executemany("INSERT INTO identity VALUES (?, ?)", wanted.items())
                return
        differing = [
            f"{name} (was {stored.get(name, 'not recorded')}, is {wanted.get(name, 'not given')})"
            for name in sorted(stored.keys() | wanted.keys())
            if stored.get(name) != wanted.get(name)
        ]
        if differing:
            raise InputError(
                f"{self.path.parent}: holds a run with other settings: {', '.join(differing)}; "
                "set them back or choose another run directory"
            )

    def add_candidates(self, candidates: Iterable[Candidate]) -> None:
        """Store candidates by index before they are measured; adding the same ones again is no change.

        Raises InputError where an index is already taken by another candidate.
        """
        with self._transaction() as connection:
            for candidate in candidates:
                added = connection.execute(
                    "INSERT INTO candidates VALUES (?, ?) ON CONFLICT DO NOTHING",
                    (candidate.index, _dumps(dataclasses.asdict(candidate))),
                )
                if added.rowcount == 0 and self._candidate_at(candidate.index) != candidate:
                    raise InputError(
                        f"{self.path}: candidate {candidate.index} is not the one of the earlier start; "
                        "choose another run directory"
                    )

    def replace_candidates(self, candidates: Iterable[Candidate]) -> None:
        """Put candidates in the place of those with the same indices; what was measured of those stays."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE candidates SET record = ? WHERE place = ?",
                ((_dumps(dataclasses.asdict(candidate)), candidate.index) for candidate in candidates),
            )

    def _candidate_at(self, index: int) -> Candidate:
        (record,) = self._rows("SELECT record FROM candidates WHERE place = ?", (index,))[0]
        return self._read(_candidate, record)

    def candidates(self) -> list[Candidate]:
        """Return all candidates in the order of their index, which starts at 0 and has no gap."""
        rows = self._rows("SELECT place, record FROM candidates ORDER BY place")
        gap = next((place for place, (found, _) in enumerate(rows) if found != place), None)
        if gap is not None:
            raise LedgerError(f"{self.path}: lacks candidate {gap}; {_DAMAGED}")
        return [self._read(_candidate, record) for _, record in rows]

    def put(self, id: str, environment: str, measurement: Measurement) -> None:
        """Store what was measured under an environment's key; replaces an earlier measurement of the same.

        A measurement whose worker was lost says nothing about the candidate: it never replaces a whole one.
        """
        lost = measurement.fault == Reason.WORKER_LOST
        self.put_records([(id, environment, lost, measurement.to_json())])

    def put_records(self, records: Iterable[tuple[str, str, bool, str]]) -> None:
        """Store measurements as `put` does, all or none: id, environment's key, worker lost, JSON."""
        with self._transaction() as connection:
            connection.executemany(
                "INSERT INTO measurements VALUES (?, ?, ?, ?) ON CONFLICT (id, environment) DO UPDATE "
                "SET lost = excluded.lost, record = excluded.record WHERE excluded.lost <= measurements.lost",
                records,
            )

    def get(self, id: str, environment: str) -> Measurement | None:
        """Return the measurement of a finished candidate, None if there is none or its worker was lost."""
        rows = self._rows(
            "SELECT record FROM measurements WHERE id = ? AND environment = ? AND lost = 0", (id, environment)
        )
        return self._read(Measurement.from_json, rows[0][0]) if rows else None

    def measurements(self, environment: str) -> dict[str, Measurement]:
        """Return all measurements by candidate id for judging, also those whose worker was lost."""
        rows = self._rows("SELECT id, record FROM measurements WHERE environment = ?", (environment,))
        return {id: self._read(Measurement.from_json, record) for id, record in rows}

    def finished_ids(self, environment: str) -> set[str]:
        """Return the ids that `get` has a measurement for."""
        rows = self._rows("SELECT id FROM measurements WHERE environment = ? AND lost = 0", (environment,))
        return {id for (id,) in rows}

    def reply(self, request: Request) -> bytes | None:
        """Return the stored reply to a request, byte for byte."""
        rows = self._rows(
            "SELECT reply FROM replies WHERE request = ? AND draw = ?", (request.hash, request.draw)
        )
        return rows[0][0] if rows else None

    def keep_reply(self, request: Request, reply: bytes, base_url: str) -> None:
        """Store a reply with its request; a second one to the same request and draw changes nothing."""
        body = zlib.compress(request.text.encode())
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO replies VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (request.hash, request.draw, body, reply, base_url),
            )

    def request(self, hash: str) -> Request | None:
        """Return the latest draw of a request that was replied to."""
        rows = self._rows(
            "SELECT body, draw FROM replies WHERE request = ? ORDER BY draw DESC LIMIT 1", (hash,)
        )
        return Request(zlib.decompress(rows[0][0]).decode(), rows[0][1]) if rows else None

    def replies(self) -> list[bytes]:
        """Return all replies."""
        return [reply for (reply,) in self._rows("SELECT reply FROM replies")]

    def replace_verdicts(self, verdicts: Sequence[Verdict]) -> None:
        """Replace all verdicts at once: a reader sees the old ones or the new ones, never a mixture.

        Raises ValueError where two verdicts carry one index, and keeps the old ones.
        """
        if len({verdict.index for verdict in verdicts}) < len(verdicts):
            raise ValueError("two verdicts for one index")
        with self._transaction() as connection:
            connection.execute("DELETE FROM verdicts")
            connection.executemany(
                "INSERT INTO verdicts VALUES (?, ?)",
                ((verdict.index, _dumps(dataclasses.asdict(verdict))) for verdict in verdicts),
            )

    def verdicts(self) -> list[Verdict]:
        """Return all verdicts in the order of their index."""
        rows = self._rows("SELECT record FROM verdicts ORDER BY place")
        return [self._read(_verdict, record) for (record,) in rows]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction, one thread at a time; any exception undoes it."""
        with self._lock, explained(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:  # Ctrl-C too must not leave half a transaction; raised again
                if self._connection.in_transaction:  # a full disk has already undone it
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._lock, explained(self.path):
            return self._connection.execute(query, values).fetchall()

    def _read(self, record_from: Any, text: str) -> Any:
        """Decode one stored record. Raises LedgerError where another version wrote it."""
        try:
            return record_from(text)
        except (ValueError, TypeError, KeyError) as error:
            raise LedgerError(
                f"{self.path}: a record is not readable ({error}); "
                "use the version that wrote it or start a new run directory"
            ) from None


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, sort_keys=True)


def _candidate(text: str) -> Candidate:
    fields = json.loads(text)
    return Candidate(**fields | {name: tuple(fields[name]) for name in ("requested_ops", "earlier_ids")})


def _verdict(text: str) -> Verdict:
    fields = json.loads(text)
    stage = fields["stage"] and Stage(fields["stage"])
    return Verdict(**fields | {"reason": Reason(fields["reason"]), "stage": stage})
