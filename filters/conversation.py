"""One job in one worker: send it, collect its events, enforce the limits from outside."""

import json
import secrets
import select
import signal
import threading
from contextlib import suppress
from time import monotonic
from typing import Any

from filters.admission import CrowdedError, Share
from filters.crew import Worker
from filters.limits import Consumption, Limits
from filters.measurement import Measurement, checked_facts
from filters.reasons import Reason, Stage
from filters.spawner import Child
from filters.worker.keeper import OUR_FAILURE

_POLL_SECONDS = 0.05
_END_SECONDS = 20
_MESSAGE_BYTES_MAX = 4 << 20
_KEPT_BYTES_MAX = 256 << 20
"""Device memory that a worker may hold on to between two jobs; nobody counts it."""


class Conversation:
    """Blocks in `hold` until the job is done; afterwards `measurement()` tells what the worker reported."""

    def __init__(
        self,
        worker: Worker,
        job: dict[str, Any],
        limits: Limits,
        stopping: threading.Event,
        share: Share | None = None,
    ) -> None:
        """`share` is the worker's memory on the device, None on a CPU."""
        self._worker = worker
        self._scratch = worker.scratch
        self._exclusive = worker.card.exclusive
        self._stays = bool(job["stays"])
        self._limits = limits
        self._stopping = stopping
        self._share = share
        self._nonce = secrets.token_hex(16)
        self._job = json.dumps(job | {"nonce": self._nonce}) + "\n"
        self._started = monotonic()
        self._stage: str | None = None
        self._stage_started = 0.0
        self._entered = self._started
        self._pending = b""
        self._finished = False
        self._kept_bytes = 0
        self._fault: str | None = None
        self._detail: str | None = None
        self._done: list[str] = []
        self._start_seconds: float | None = None
        self._seconds: list[float] = []
        self.answers: dict[str, Any] = {}
        """All facts that arrived."""
        self.crowded: CrowdedError | None = None
        """Set where this worker had to give up for want of memory, and has to start again with more."""

    def hold(self) -> None:
        """Run the job to its end. Of a worker that does not stay nothing survives this call."""
        child = self._worker.child
        self._stage_started = self._clock(child)
        consumption = Consumption(child, self._scratch)
        try:
            self._send(child, self._job.encode())
            while not self._stopping.is_set() and not self._waits_for_more() and self._listen(child):
                self._enforce(child, consumption)
        finally:
            self._worker.unharmed = self._may_stay()
            if not self._worker.unharmed:
                self._end(child)

    def _waits_for_more(self) -> bool:
        return self._stays and self._finished

    def _may_stay(self) -> bool:
        """Whether the worker can take another job: this one did not fail, and left nothing behind."""
        unharmed = self._fault is None and not self.answers.get("side_effects")
        return self._waits_for_more() and unharmed and self._kept_bytes <= _KEPT_BYTES_MAX

    def measurement(self) -> Measurement:
        """Return the facts, with the fault that ended them if there was one."""
        return Measurement().with_facts(
            self.answers
            | {
                "fault": self._fault,
                "fault_detail": self._detail,
                "stages_done": self._done,
                "start_seconds": self._start_seconds,
                "stage_seconds": self._seconds,
                "fault_stage": (self._stage or Stage.BUILD.value) if self._fault else None,
                "wall_seconds": round(monotonic() - self._started, 3),
            }
        )

    def fault_text(self) -> str:
        """Return why the job did not come to its end."""
        return self._detail or self._fault or "no answer"

    def _clock(self, child: Child) -> float:
        """Seconds that count against limits: the time in which a neighbour held the machine does not."""
        return monotonic() - self._exclusive.stopped_seconds(child)

    def _since_entered(self) -> float:
        """Return the seconds since the last call: what one part of the job took."""
        before, self._entered = self._entered, monotonic()
        return round(self._entered - before, 3)

    def _send(self, child: Child, line: bytes) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # its end is noticed by the next read
            child.channel.sendall(line)

    def _listen(self, child: Child) -> bool:
        """Take what the child has sent; False once it has closed the channel."""
        readable, _, _ = select.select([child.channel], [], [], _POLL_SECONDS)
        if not readable:
            return True
        try:
            received = child.channel.recv(1 << 16)
        except ConnectionResetError:
            return True  # it ended without reading everything; what it said before comes next
        self._pending += received
        *lines, self._pending = self._pending.split(b"\n")
        for line in lines:
            self._take(child, line)
        if len(self._pending) > _MESSAGE_BYTES_MAX:
            self._break_off(child, Reason.CRASHED, "flooded its result channel")
        return bool(received)

    def _take(self, child: Child, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return  # written by the candidate
        if not isinstance(message, dict) or message.get("nonce") != self._nonce or self._fault is not None:
            return
        try:
            self._obey(child, message)
        except (KeyError, TypeError, ValueError) as error:  # it was taken over by its candidate
            self._break_off(child, Reason.CRASHED, f"reported nonsense: {error!r}")

    def _obey(self, child: Child, message: dict[str, Any]) -> None:
        match message.get("event"):
            case "stage":
                if self._stage is None:
                    self._start_seconds = self._since_entered()
                self._stage = str(message["stage"])
                self._stage_started = self._clock(child)
            case "facts":
                self._take_facts(child, message)
            case "fault":
                self._fault, self._detail = str(message["fault"]), str(message["detail"])
            case "off_device" if self._share is not None and self._stage == Stage.COMPILE:
                self._exclusive.exempt(child)
            case "memory" if self._share is not None:
                self._exclusive.include(child)
                self._change_share(child, self._share, int(message["kept"]), int(message["wanted"]))
            case "starved" if self._share is not None:
                self._give_up(child, CrowdedError(self._share.bytes))
            case "timing":
                self._exclusive.acquire(child)
                self._stage_started = self._clock(child)
                self._send(child, b"go\n")
            case "timed":
                self._exclusive.release(child)
                self._stage_started = self._clock(child)
            case "end":
                self._kept_bytes = int(message["kept_bytes"])
                self._finished = True

    def _change_share(self, child: Child, share: Share, kept_bytes: int, wanted_bytes: int) -> None:
        """Wait for memory; neither the stage's limit nor its time counts that."""
        asked = monotonic()
        try:
            granted = share.change(kept_bytes, wanted_bytes, building=self._stage == Stage.BUILD)
        except CrowdedError as error:
            self._give_up(child, error)
            return
        self._entered += monotonic() - asked
        self._stage_started = self._clock(child)
        self._send(child, b"%d\n" % granted)

    def _give_up(self, child: Child, error: CrowdedError) -> None:
        self.crowded = error
        self._break_off(child, Reason.WORKER_LOST, str(error))

    def _take_facts(self, child: Child, message: dict[str, Any]) -> None:
        self.answers |= message["facts"] if self._stage is None else checked_facts(message["facts"])
        if "done" in message:
            self._done.append(str(message["done"]))
            self._seconds.append(self._since_entered())

    def _enforce(self, child: Child, consumption: Consumption) -> None:
        child.listen()
        limit = self._limits.seconds(self._stage)
        if self._clock(child) - self._stage_started > limit:
            self._break_off(child, Reason.TIMEOUT, f"{self._stage or 'start'} took longer than {limit:g} s")
        excess = consumption.excess(self._limits)
        if excess is not None:
            self._break_off(child, *excess)

    def _break_off(self, child: Child, fault: Reason, detail: str) -> None:
        if self._fault is None:
            self._fault, self._detail = fault.value, detail
        child.signal(signal.SIGKILL)

    def _end(self, child: Child) -> None:
        """Wait for the exit, killing if need be, and tell a silent death from a finished job."""
        if not self._finished or self._stays:
            child.signal(signal.SIGKILL)
        if not child.wait(_END_SECONDS):
            child.signal(signal.SIGKILL)
            child.wait(_END_SECONDS)
        if self._finished or self._fault is not None:
            return
        unheard = child.exit_code is None and child.exit_signal is None
        if self._stage is None or unheard or child.exit_code == OUR_FAILURE:
            self._fault = Reason.WORKER_LOST.value
        else:
            self._fault = Reason.CRASHED.value
        self._detail = f"{child.how_it_ended()} during {self._stage or 'start'}{self._last_words()}"

    def _last_words(self) -> str:
        """Return the last line of the child's output, for the reader of a crash."""
        with suppress(OSError):
            tail = (self._scratch / "log").read_bytes()[-4096:].decode(errors="replace")
            lines = [line.strip() for line in tail.splitlines() if line.strip()]
            return f": {lines[-1][:200]}" if lines else ""
        return ""
