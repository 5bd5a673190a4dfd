"""One device of this machine, with what its workers share: its memory, and the right to time alone on it."""

import math
import os
import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from filters.admission import MemoryBudget
from filters.exclusive import Exclusive


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Card:
    """A CUDA device, or the CPU."""

    number: int | None = None
    """Place among the visible devices; None for the CPU, and where there is no choice."""
    memory: MemoryBudget | None = None
    """None for the CPU."""
    exclusive: Exclusive = field(default_factory=Exclusive)


class Slots:
    """Places for workers, spread evenly over the cards."""

    def __init__(self, cards: Sequence[Card], workers: int) -> None:
        self._free: queue.SimpleQueue[Card] = queue.SimpleQueue()
        for _ in range(math.ceil(workers / len(cards))):
            for card in cards:
                self._free.put(card)

    @contextmanager
    def one(self) -> Iterator[Card]:
        """Wait for a free place and hold it; tells on which card it is."""
        card = self._free.get()
        try:
            yield card
        finally:
            self._free.put(card)


def visible_cards(device: str) -> int:
    """Return how many devices there seem to be, without touching CUDA; at least one."""
    if device == "cpu":
        return 1
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return len(chosen.split(",")) if chosen else max(1, len(list(Path("/dev").glob("nvidia[0-9]*"))))
