"""What the worker server does to itself and to each of its workers; crosses the command line as JSON."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from filters.sandbox import landlock, namespaces, seccomp
from filters.sandbox.syscalls import give_up_privileges


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """Switches that a trial has shown to work; one that fails all the same ends the worker."""

    scratch_root: Path
    """Holds the scratch folders of all workers."""
    enter: bool = False
    """The server has to enter namespaces by itself: bubblewrap has not done it."""
    namespaces: bool = False
    """Each worker gets a PID and a mount namespace."""
    landlock: bool = False
    seccomp: bool = False

    def confine_server(self) -> None:
        """Run once, in the server, while it has a single thread."""
        if self.enter:
            namespaces.enter(self.scratch_root)
        if self.namespaces:
            namespaces.leave_first_numbers()
            namespaces.mount_proc()  # what libraries learn here while they load must hold in the workers
            namespaces.let_threads_be_named()

    def confine_keeper(self, scratch: Path) -> None:
        """Run in the first process of each worker's PID namespace."""
        if self.namespaces:
            namespaces.settle(self.scratch_root, scratch)

    def confine_worker(self, scratch: Path) -> None:
        """Run in each worker, last of all before the candidate comes."""
        if self.namespaces:
            namespaces.let_threads_be_named()
        give_up_privileges()
        if self.landlock:
            landlock.restrict([scratch])
        if self.seccomp:
            seccomp.restrict(signals=not self.namespaces)

    def to_json(self) -> str:
        """Return the text that `from_json` reads."""
        return json.dumps(dataclasses.asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "Confinement":
        """Read what `to_json` wrote."""
        fields = json.loads(text)
        return cls(**fields | {"scratch_root": Path(fields["scratch_root"])})
