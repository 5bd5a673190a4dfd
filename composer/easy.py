"""The easy slice: layers of a single element-wise operator or reduction.

Small models got no signal from CUDA-Agent-Ops-6K: a model of 4B parameters failed on all of its rows and was
always right on single element-wise operators, so tasks of graded difficulty have to start there.
KernelBench's level 1 has some of these layers itself; their rules are not `alone`.
"""

import math
import random
from collections.abc import Sequence

from composer.rules import Rule, reduction
from composer.sizes import FASTEST

_SLOWEST = 2 * FASTEST
"""An element-wise operator takes about 2 ms in the memory that profiles allow; sizes are within a step."""


def easy_seconds(rng: random.Random) -> float:
    """Draw the eager time of an easy layer: log-uniform, but no longer than each of them can take."""
    return math.exp(rng.uniform(math.log(FASTEST), math.log(_SLOWEST)))


def easy_rules(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Return the rules that may be an easy layer by themselves."""
    reductions = {rule.operator for rule in reduction.RULES}
    return tuple(
        rule for rule in rules if rule.alone and (rule.transfer is None or rule.operator in reductions)
    )
