"""Tokens and money: counted from what servers report, estimated before and where they report nothing."""

import json
from dataclasses import dataclass

from composer.llm.errors import CostLimitError
from composer.llm.requests import Request
from composer.llm.settings import Price

CHARACTERS_PER_TOKEN = 3.6
"""English and code in the tokenizers of current models; good to some 20 %."""

REPLY_TOKENS = 700
"""What a reply has before any is known; tasks are some 60 lines."""


BATCH_DISCOUNT = 0.5
"""Price of a token in a batch relative to the usual one."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Of one request, or of many."""

    prompt: int = 0
    reply: int = 0
    """Reasoning included."""

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.prompt + other.prompt, self.reply + other.reply)

    def cost(self, price: Price) -> float:
        """In US dollars."""
        return (self.prompt * price.input + self.reply * price.output) / 1e6


def estimated(request: Request) -> Tokens:
    """Return the tokens of a request by its length, with a reply of the usual one."""
    characters = sum(len(message["content"]) for message in request.messages)
    longest = request.body.get("max_tokens") or REPLY_TOKENS
    return Tokens(round(characters / CHARACTERS_PER_TOKEN), min(longest, REPLY_TOKENS))


def reported(reply: bytes) -> Tokens | None:
    """Return what the server says that a reply took; None where it says nothing."""
    try:
        usage = json.loads(reply)["usage"]
        return Tokens(int(usage["prompt_tokens"]), int(usage["completion_tokens"]))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


class Meter:
    """Adds up what was bought, and stops before the limit is passed."""

    def __init__(self, price: Price | None = None, max_cost: float | None = None) -> None:
        self.tokens = Tokens()
        self.replies = 0
        self._price = price
        self._max_cost = max_cost
        self._under_way = 0

    @property
    def cost(self) -> float | None:
        """US dollars so far, None without a price."""
        return self.tokens.cost(self._price) if self._price else None

    def bought(self, tokens: Tokens) -> None:
        """Count a reply."""
        self.tokens += tokens
        self.replies += 1

    def start(self, request: Request) -> None:
        """Count a request as under way. Raises CostLimitError where it might pass the limit."""
        if self._price and self._max_cost is not None:
            spent = self.tokens.cost(self._price)
            each = spent / self.replies if self.replies else estimated(request).cost(self._price)
            if spent + (self._under_way + 1) * each > self._max_cost:
                raise CostLimitError(f"${spent:.2f} of ${self._max_cost:g} are spent")
        self._under_way += 1

    def end(self) -> None:
        """Count a request as no longer under way."""
        self._under_way -= 1

    def line(self) -> str:
        """Say what was bought."""
        cost = "" if self.cost is None else f", ${self.cost:.2f}"
        return f"{self.tokens.prompt:,} + {self.tokens.reply:,} tokens{cost}"
