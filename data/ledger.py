"""The truth about a run's progress: one SQLite file that survives being killed at any moment.

Every call that writes is one transaction in WAL mode, so a `SIGKILL` loses at most the call that was
under way. `synchronous=NORMAL` is enough for that: only a power cut can take the last transactions.
Texts are stored as ASCII JSON, because SQLite refuses the lone surrogates that LLM replies contain.
"""

import dataclasses
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from composer.candidate import Candidate
from composer.llm.requests import Request
from data.errors import InputError
from data.ledger_errors import LedgerError, explained
from data.ledger_layout import (
    DAMAGED,
    JudgedRecord,
    candidate_from,
    dumps,
    prepare,
    verdict_from,
    verdict_text,
)
from filters.measurement import Measurement
from filters.reasons import Reason
from filters.verdict import Verdict

_PAGE = 1_000
"""Rows that are read at once."""


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
            prepare(connection, self.path)
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
        wanted = {name: dumps(value) for name, value in identity.items()}
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
                    (candidate.index, dumps(dataclasses.asdict(candidate))),
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
                ((dumps(dataclasses.asdict(candidate)), candidate.index) for candidate in candidates),
            )

    def _candidate_at(self, index: int) -> Candidate:
        (record,) = self._rows("SELECT record FROM candidates WHERE place = ?", (index,))[0]
        return self._read(candidate_from, record)

    def candidates(self) -> list[Candidate]:
        """Return all candidates in the order of their index, which starts at 0 and has no gap."""
        return list(self.each_candidate())

    def each_candidate(self) -> Iterator[Candidate]:
        """Yield all candidates as `candidates` does, with few of them in memory."""
        for expected, (place, record) in enumerate(self._pages("candidates")):
            if place != expected:
                raise LedgerError(f"{self.path}: lacks candidate {expected}; {DAMAGED}")
            yield self._read(candidate_from, record)

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

    def measured(self, id: str) -> dict[str, Measurement]:
        """Return all measurements of one candidate by the environment's key, also where a worker was lost."""
        rows = self._rows("SELECT environment, record FROM measurements WHERE id = ?", (id,))
        return {key: self._read(Measurement.from_json, record) for key, record in rows}

    def measurements(self, environment: str) -> dict[str, Measurement]:
        """Return all measurements by candidate id for judging, also those whose worker was lost."""
        rows = self._rows("SELECT id, record FROM measurements WHERE environment = ?", (environment,))
        return {id: self._read(Measurement.from_json, record) for id, record in rows}

    def finished_ids(self, environment: str) -> set[str]:
        """Return the ids that `get` has a measurement for."""
        rows = self._rows("SELECT id FROM measurements WHERE environment = ? AND lost = 0", (environment,))
        return {id for (id,) in rows}

    def keep_judged(self, records: Iterable[JudgedRecord]) -> None:
        """Store what candidates were judged to be by themselves, in the place of what was stored before."""
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO judged VALUES (?, ?, ?, ?, ?, ?, ?)", records)

    def judged(self, id: str, basis: str) -> dict[str, JudgedRecord]:
        """Return what a candidate was judged to be on that basis, by the environment's key."""
        rows = self._rows("SELECT * FROM judged WHERE id = ? AND basis = ?", (id, basis))
        return {row[1]: JudgedRecord(*row) for row in rows}

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

    def replace_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Replace all verdicts at once: a reader sees the old ones or the new ones, never a mixture.

        Raises ValueError where two verdicts carry one index, and keeps the old ones.
        """
        with self._transaction() as connection:
            connection.execute("DELETE FROM verdicts")
            for verdict in verdicts:
                added = connection.execute(
                    "INSERT INTO verdicts VALUES (?, ?) ON CONFLICT DO NOTHING",
                    (verdict.index, verdict_text(verdict)),
                )
                if added.rowcount == 0:
                    raise ValueError("two verdicts for one index")

    def verdicts(self) -> list[Verdict]:
        """Return all verdicts in the order of their index."""
        return list(self.each_verdict())

    def each_verdict(self) -> Iterator[Verdict]:
        """Yield all verdicts as `verdicts` does, with few of them in memory."""
        for _, record in self._pages("verdicts"):
            yield self._read(verdict_from, record)

    def _pages(self, table: str) -> Iterator[tuple[int, str]]:
        place = -1
        while page := self._rows(
            f"SELECT place, record FROM {table} WHERE place > ? ORDER BY place LIMIT {_PAGE}", (place,)
        ):
            yield from page
            place = page[-1][0]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction, one thread at a time; any exception undoes it."""
        with self._lock, explained(self.path):
            if self._connection.in_transaction:  # the call is a part of a larger one
                yield self._connection
                return
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
