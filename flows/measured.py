"""What a run knows of its candidates, where it was measured in one environment or in several."""

from collections.abc import Sequence

from data.ledger import Ledger
from filters.environment import Environment
from filters.measurement import Measurement
from filters.reasons import Reason


def measured(ledger: Ledger, environments: Sequence[Environment]) -> dict[str, Measurement]:
    """Return the measurement of each candidate by its id.

    Of several the one in the earliest environment counts, unless its worker was lost.
    """
    found: dict[str, Measurement] = {}
    for environment in environments:
        for id, measurement in ledger.measurements(environment.key).items():
            if id not in found or found[id].fault == Reason.WORKER_LOST:
                found[id] = measurement
    return found


def environment_of(ledger: Ledger, environments: Sequence[Environment]) -> dict[str, Environment]:
    """Return the environment of each whole measurement that `measured` returns, by the candidate's id."""
    return {
        id: environment
        for environment in reversed(environments)
        for id in ledger.finished_ids(environment.key)
    }
