"""What an operator does, told from its name."""

import re

_CATEGORIES = (
    ("attention", r"attention|transformer"),
    ("recurrent", r"(rnn|lstm|gru)(cell|tanh|relu)?$"),
    ("convolution", r"conv"),
    ("pooling", r"pool"),
    ("loss", r"loss|entropy|kl_div"),
    ("embedding", r"embedding"),
    ("resampling", r"interpolate|upsampl|shuffle|grid"),
    ("padding", r"pad([123]d|_nd)?$"),
    ("fft", r"\bfft\b|stft"),
    ("distance", r"cosine|distance|dist$"),
    ("scan", r"cum(sum|prod|max|min|sumexp)|trapezoid|\bdiff$"),
    (
        "reduction",
        r"\b(nan)?(sum|mean|prod|std|var|max|min|amax|amin|aminmax|argmax|argmin|all|any|(nan)?median|mode|norm|"
        r"(vector|matrix)_norm|(std|var)_mean|logsumexp|count_nonzero|(nan)?quantile|trace|histc|bincount)$",
    ),
    ("normalization", r"norm|lrn"),
    (
        "linear algebra",
        r"\blinalg\b|matmul|\b(add|baddb|b|addb)?mm$|\b(add)?mv$|\b(add|chain_|multi_)?(bmm|matmul|multi_dot)$|"
        r"linear$|einsum|tensordot|\b(v|inner|outer|kron|cross|dot|vdot|addr|inv|det|logdet|cholesky\w*)$",
    ),
    ("sorting", r"sort$|topk$|kthvalue$|unique|searchsorted|bucketize"),
    ("indexing", r"gather|scatter|index_|take|masked_(select|scatter)|one_hot"),
    ("rearrangement", r"\b\w*(cat|stack|roll|flip\w*|rot90|repeat\w*|tile|fold|tri[lu]|diag\w*)$|block_diag"),
    (
        "activation",
        r"(re|ge|si|e|ce|se|pre|g|r)lu6?$|relu|softm(ax|in)|sigmoid|tanh|mish|hardswish|softplus|softsign|"
        r"shrink|threshold$",
    ),
)
"""First pattern found in the lower-case canonical name wins; what none fits is elementwise arithmetic."""


def category(operator: str) -> str:
    """Return the kind of one operator by its canonical name."""
    name = operator.lower()
    return next((kind for kind, pattern in _CATEGORIES if re.search(pattern, name)), "elementwise")
