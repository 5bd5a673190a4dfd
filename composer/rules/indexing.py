"""Embeddings, look-ups by index, and operators that move, repeat or cut entries."""

from collections.abc import Callable

from composer.draft import TOKENS, Draft, Running
from composer.plan import Argument, Size, Term, X
from composer.rules.rule import BATCHED, EVERY_AXIS, Call, CallDrawer, Rule, along_one, rule
from composer.values import DIFFERENCE, FRESH, FRESH_SUM, KEPT, LARGEST_OF, MASKED, MIXED, Transfer

_F = "torch.nn.functional."
_IMAGES = ("NCHW", "NCDHW")
_WITH_MATRICES = ("NLF", "NCHW", "NPQ", "NALE")

Pairs = tuple[tuple[str, Argument], ...]


def _inner_axis(draft: Draft, running: Running) -> str:
    """Draw an axis other than the batch."""
    return draft.rng.choice(running.layout[1:])


def _vocabulary(draft: Draft) -> Size:
    """Return the size below which the tokens are."""
    return Size(draft.inputs[0].below or "")


def _embedding(draft: Draft, running: Running) -> Call:
    return Call(args=(_vocabulary(draft), draft.axis_size("F", "FEATURES")), layout="NLF")


def _embedding_bag(draft: Draft, running: Running) -> Call:
    mode = ("mode", draft.rng.choice(("mean", "sum", "max")))
    features = draft.axis_size("F", "FEATURES")
    return Call(args=(_vocabulary(draft), features), kwargs=(mode,), axes="T", layout="NF")


def _from_table(draft: Draft, running: Running) -> Call:
    """The table is an input."""
    table = draft.input((_vocabulary(draft).name, draft.axis_size("F", "FEATURES").name))
    return Call(args=(X, table), layout="NLF")


def _bag_from_table(draft: Draft, running: Running) -> Call:
    table = draft.input((_vocabulary(draft).name, draft.axis_size("F", "FEATURES").name))
    return Call(args=(X, table), kwargs=(("mode", "sum"),), axes="T", layout="NF")


def _moved(
    operator: str,
    call: CallDrawer,
    layouts: tuple[str, ...] = BATCHED,
    transfer: Transfer = KEPT,
    *,
    exact: bool = True,
    **options: object,
) -> Rule:
    """Entries stay what they are; along the call's axes only their order and number change."""
    pins = ("order",) if transfer is KEPT else ()
    return rule(operator, layouts, call, transfer=transfer, exact=exact, pins=pins, **options)


def _reversed(draft: Draft, running: Running) -> Call:
    axis = _inner_axis(draft, running)
    return Call(args=(X,), kwargs=(("dims", (running.axis(axis),)),), axes=axis)


def _reversed_second(draft: Draft, running: Running) -> Call:
    return Call(args=(X,), axes=running.layout[1])


def _rolled(draft: Draft, running: Running) -> Call:
    axis = _inner_axis(draft, running)
    return Call(args=(X, draft.rng.choice((3, 5, 7))), kwargs=(("dims", running.axis(axis)),), axes=axis)


def _turned(draft: Draft, running: Running) -> Call:
    dims = (len(running.layout) - 2, len(running.layout) - 1)
    return Call(args=(X, draft.rng.choice((1, 3))), kwargs=(("dims", dims),), axes=running.layout[-2:])


def _tiled(draft: Draft, running: Running) -> Call:
    axis = _inner_axis(draft, running)
    return Call(args=(X, tuple(2 if letter == axis else 1 for letter in running.layout)), axes=axis)


def _beside_diagonal(draft: Draft, running: Running) -> Call:
    return Call(args=(X,), kwargs=(("diagonal", draft.rng.choice((-1, 1, 2))),))


def _along(operator: str, dim: str) -> Rule:
    """One index for each entry of a shorter result."""

    def call(draft: Draft, running: Running) -> Call:
        axis = _inner_axis(draft, running)
        number = running.axis(axis)
        index = draft.input(running.shape(), "indices", below=running.size(axis))
        args = (X, index) if operator == "torch.take_along_dim" else (X, number, index)
        kwargs: Pairs = ((dim, number),) if operator == "torch.take_along_dim" else ()
        return Call(args=args, kwargs=kwargs)

    return rule(operator, BATCHED, call, transfer=KEPT, named=EVERY_AXIS, exact=True)


def _selected(draft: Draft, running: Running) -> Call:
    """Some rows of an axis, in another order."""
    axis = _inner_axis(draft, running)
    chosen = draft.axis_size("L", "SELECTED")
    index = draft.input((chosen.name,), "indices", below=running.size(axis))
    return Call(args=(X, running.axis(axis), index))


def _permuted_into(draft: Draft, running: Running) -> Call:
    """Rows of another tensor replace some of ours."""
    axis = running.layout[1]
    index = draft.input((running.size(axis).name,), "permutation")
    half = Term("{0}[::2]", lambda index: index[::2], (index,))
    rows = Term("{0}[:, ::2]", lambda y: y[:, ::2], (draft.input(running.shape()),))
    return Call(args=(X, 1, half, rows))


def _joined(operator: str, along: Callable[[Running], str | None], stacked: bool = False) -> Rule:
    """Beside a fresh input."""

    def call(draft: Draft, running: Running) -> Call:
        y = draft.input(running.shape())
        axis = along(running)
        kwargs: Pairs = () if axis is None else (("dim", running.axis(axis)),)
        layout = (
            {"NF": "NLF", "NLF": "NCHW", "NCL": "NCHW", "NCHW": "NCDHW"}[running.layout] if stacked else None
        )
        return Call(args=((X, y),), kwargs=kwargs, layout=layout)

    layouts = ("NF", "NLF", "NCL", "NCHW") if stacked else BATCHED
    return rule(operator, layouts, call, transfer=MIXED, named=EVERY_AXIS)


def _over(
    operator: str, taken: tuple[str, Callable[..., object]], *args: Argument, **kwargs: Argument
) -> Rule:
    """Part of a fresh input overwrites part of the running value."""

    def call(draft: Draft, running: Running) -> Call:
        text, compute = taken
        part = Term(text, compute, (draft.input(running.shape()),))
        return Call(args=(X, part, *args), kwargs=tuple(kwargs.items()))

    return rule(operator, BATCHED, call, transfer=MIXED, named=EVERY_AXIS)


def _fresh(operator: str, call: Callable[[Draft, Running], Call], transfer: Transfer = FRESH) -> Rule:
    return rule(operator, (TOKENS,), call, transfer=transfer)


def _second(running: Running) -> str:
    return running.layout[1]


EMBEDDING_RULES = (
    _fresh("torch.nn.Embedding", _embedding),
    _fresh("torch.nn.EmbeddingBag", _embedding_bag, FRESH_SUM),
    _fresh(_F + "embedding", _from_table),
    _fresh(_F + "embedding_bag", _bag_from_table, FRESH_SUM),
)

RULES = (
    _moved("torch.diff", along_one(), transfer=DIFFERENCE, exact=False),
    _moved("torch.flip", _reversed),
    _moved("torch.fliplr", _reversed_second),
    _moved("torch.repeat_interleave", along_one(2)),
    _moved("torch.roll", _rolled),
    _moved("torch.rot90", _turned, _IMAGES),
    _moved("torch.sort", along_one(), suffix=".values"),
    _moved("torch.tile", _tiled),
    rule("torch.topk", BATCHED, along_one(2), transfer=LARGEST_OF, suffix=".values", exact=True),
    _moved("torch.tril", _beside_diagonal, _WITH_MATRICES, MASKED),
    _moved("torch.triu", _beside_diagonal, _WITH_MATRICES, MASKED),
    _along("torch.gather", "dim"),
    _along("torch.take_along_dim", "dim"),
    rule("torch.index_select", BATCHED, _selected, transfer=KEPT, named=EVERY_AXIS, exact=True),
    rule("torch.index_copy", BATCHED, _permuted_into, transfer=MIXED, named=EVERY_AXIS),
    _joined("torch.cat", _second),
    _joined("torch.column_stack", lambda running: None),
    _joined("torch.hstack", lambda running: None),
    _joined("torch.vstack", lambda running: None),
    _joined("torch.stack", _second, stacked=True),
    _over("torch.slice_scatter", ("{0}[:, 1::2]", lambda y: y[:, 1::2]), dim=1, start=1, step=2),
)
