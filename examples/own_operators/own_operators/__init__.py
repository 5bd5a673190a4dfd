"""A source for OpWeaver: it says of each operator which tensors it takes and what it is built with."""

from collections.abc import Iterator

from ops_crawler.operator import Operator
from ops_crawler.own import own_operator

from .norms import FusedRMSNorm
from .rotary import RotaryEmbedding
from .vision import LocalContrast, SqueezeExcitation, merge_scales

LICENSE = "Apache-2.0"


class OwnOperators:
    """The operators of this package."""

    def operators(self) -> Iterator[Operator]:
        """Yield a record for each."""
        yield own_operator(FusedRMSNorm, layouts=("NF", "NLF"), arguments=("F", "eps=1e-6"), license=LICENSE)
        yield own_operator(RotaryEmbedding, layouts=("NLF",), arguments=("L", "F"), license=LICENSE)
        yield own_operator(LocalContrast, layouts=("NCHW",), license=LICENSE)
        yield own_operator(SqueezeExcitation, layouts=("NCHW",), arguments=("C",), license=LICENSE)
        yield own_operator(merge_scales, layouts=("NCHW",), inputs=("NCHW",), license=LICENSE)
