"""Matrix products: over features, or between positions of a sequence."""

from composer.draft import Draft, Running
from composer.plan import RUNNING, Value
from composer.rules.rule import Call, Rule
from composer.values import CONTRACTED, PROJECTED

_X = Value(RUNNING)


def _linear(draft: Draft, running: Running) -> Call:
    out_features = draft.axis_size("F", "OUT_FEATURES")
    return Call(args=(running.size("F"), out_features), axes="F")


def _matmul(draft: Draft, running: Running) -> Call:
    columns = draft.axis_size("F", "OUT_FEATURES")
    return Call(args=(_X, draft.input((running.size("F").name, columns.name))), axes="F")


def _bmm(draft: Draft, running: Running) -> Call:
    columns = draft.axis_size("F", "OUT_FEATURES")
    shape = (running.size("N").name, running.size("F").name, columns.name)
    return Call(args=(_X, draft.input(shape)), axes="F")


def _einsum(draft: Draft, running: Running) -> Call:
    """Scores between all pairs of positions, or a mix of channels."""
    if running.layout == "NLF":
        keys = draft.axis_size("L", "KEYS")
        y = draft.input((running.size("N").name, keys.name, running.size("F").name))
        return Call(args=("nlf,nkf->nlk", _X, y), axes="F")
    channels = draft.axis_size("C", "OUT_CHANNELS")
    y = draft.input((channels.name, running.size("C").name))
    return Call(args=("nchw,dc->ndhw", _X, y), axes="C")


RULES = (
    Rule(
        operator="torch.nn.Linear",
        kind="module",
        layouts=("NF", "NLF"),
        call=_linear,
        transfer=PROJECTED,
        named="F",
        shifts=True,
        alone=False,
    ),
    Rule(
        operator="torch.matmul",
        kind="function",
        layouts=("NF", "NLF"),
        call=_matmul,
        transfer=CONTRACTED,
        named="F",
        alone=False,
    ),
    Rule(
        operator="torch.bmm",
        kind="function",
        layouts=("NLF",),
        call=_bmm,
        transfer=CONTRACTED,
        named="NF",
        alone=False,
    ),
    Rule(
        operator="torch.einsum",
        kind="function",
        layouts=("NLF", "NCHW"),
        call=_einsum,
        transfer=CONTRACTED,
        named="NFC",
        alone=False,
    ),
)
