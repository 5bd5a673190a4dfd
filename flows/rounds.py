"""How many candidates to plan next: a function of the verdicts so far and of nothing else.

Neither the number of workers nor the order in which they finish has a say, so that a run that was killed
and started again plans what an undisturbed one plans.
"""

import math

FIRST_ROUND_MAX = 256
"""Candidates that are planned before anything is known of the accept share."""
HOPELESS_SHARE = 0.025
"""A run gives up once fewer than one candidate in forty is accepted."""


def round_size(wanted: int, accepted: int, judged: int) -> int:
    """Return the size of the next round, 0 when enough are accepted or when going on is hopeless.

    The accept share is estimated as if nine of ten candidates before the first had been accepted, about what
    our own rules reach; a round is at most as large as all before it, so that a share that collapses is
    noticed early.
    """
    missing = wanted - accepted
    if missing <= 0 or is_hopeless(accepted, judged):
        return 0
    share = (accepted + 9) / (judged + 10)
    return min(math.ceil(missing / share), max(FIRST_ROUND_MAX, judged))


def is_hopeless(accepted: int, judged: int) -> bool:
    """Return whether so few are accepted that somebody should look at the reasons first."""
    return (accepted + 1) < HOPELESS_SHARE * judged
