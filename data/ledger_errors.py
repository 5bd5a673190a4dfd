"""What goes wrong with the ledger's file, in words that say what to do."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from data.errors import StorageError

_FULL_BYTES = 64 << 10
"""With less room SQLite cannot map its shared memory, and says that reading or writing failed."""
_ADVICE = {
    "SQLITE_FULL": "the disk is full; free some space and run the same command again",
    "SQLITE_READONLY": "it cannot be written to; check the rights of the file and its folder",
    "SQLITE_CANTOPEN": "it cannot be opened; check that the folder exists and may be written to",
    "SQLITE_PERM": "it cannot be opened; check the rights of the file and its folder",
    "SQLITE_BUSY": "another process keeps it locked; wait for it or end it, then run again",
    "SQLITE_LOCKED": "another process keeps it locked; wait for it or end it, then run again",
    "SQLITE_CORRUPT": "it is damaged; move it away, or restore it from a copy, and run again",
    "SQLITE_PROTOCOL": "its file system has no file locks; put the run directory on a local disk",
    "SQLITE_NOTADB": "it is no SQLite file; move it away or choose another run directory",
    "SQLITE_IOERR": "reading or writing failed; check the disk (a full or remote one can cause this)",
}


class LedgerError(StorageError):
    """The ledger cannot be opened, read or written; any method of `Ledger` may raise it.

    What was committed before stays valid, so the same command can be run again.
    """


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn a fault of the file or the disk into one line that says what to do; a misuse stays what it is."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorname", None) or ""
        if code.startswith("SQLITE_IOERR") and shutil.disk_usage(path.parent).free < _FULL_BYTES:
            code = "SQLITE_FULL"
        advice = next((text for prefix, text in _ADVICE.items() if code.startswith(prefix)), None)
        if advice is None:
            raise
        raise LedgerError(f"{path}: {advice}") from error
