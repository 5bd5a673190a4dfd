"""The private line between a worker and its parent: JSON lines over a socket, marked with a nonce.

The candidate's standard output is another descriptor, so nothing that it prints can be taken for a
result; the parent drops every line that does not carry the nonce of this job.
"""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class Channel:
    """The worker's end."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("r", encoding="utf-8", newline="\n")
        self._alone = False

    def jobs(self) -> Iterator[dict[str, Any]]:
        """Yield one job after the other, until there is none or one does not let this process stay."""
        stays = True
        while stays and (line := self._reader.readline()):
            self.job: dict[str, Any] = json.loads(line)
            self._nonce = self.job.pop("nonce")
            stays = self.job["stays"]
            yield self.job

    def send(self, event: str, **fields: Any) -> None:
        """Send one event."""
        line = json.dumps({"nonce": self._nonce, "event": event, **fields}) + "\n"
        self._connection.sendall(line.encode())

    def memory(self, kept_bytes: int, wanted_bytes: int) -> int:
        """Ask for another share of the device's memory; return the bytes that are granted.

        Until then only `kept_bytes` are held. Never while alone: those who have the rest stand still.
        """
        assert not self._alone
        self.send("memory", kept=kept_bytes, wanted=wanted_bytes)
        return int(self._reader.readline())

    def starved(self) -> NoReturn:
        """Give up for want of memory: the parent ends this process and starts another with more."""
        self.send("starved")
        self._reader.readline()  # which does not come
        sys.exit()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the machine alone: the parent stops every other worker while this block runs."""
        self.send("timing")
        self._reader.readline()
        self._alone = True
        try:
            yield
        finally:
            self._alone = False
            self.send("timed")
