"""Matrix products: over features, between positions of a sequence; distances and similarities of rows."""

from dataclasses import replace

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import Call, CallDrawer, Rule, is_module, rule
from composer.values import CONTRACTED, COSINE, DISTANCE, PROJECTED, Transfer

_F = "torch.nn.functional."


def _linear(draft: Draft, running: Running) -> Call:
    return Call(args=(running.size("F"), draft.axis_size("F", "OUT_FEATURES")), axes="F")


def _linear_with_given_weight(draft: Draft, running: Running) -> Call:
    rows = draft.axis_size("F", "OUT_FEATURES")
    return Call(args=(X, draft.input((rows.name, running.size("F").name))), axes="F")


def _bilinear(draft: Draft, running: Running) -> Call:
    few = draft.constant("OUT_FEATURES", draft.rng.choice((8, 16)))
    second = draft.constant("SECOND_FEATURES", draft.rng.choice((16, 32)))
    y = draft.input((*running.shape()[:-1], second.name))
    return Call(args=(running.size("F"), second, few), fed=(X, y), axes="F")


def _bilinear_with_given_weight(draft: Draft, running: Running) -> Call:
    few = draft.constant("OUT_FEATURES", draft.rng.choice((8, 16)))
    second = draft.constant("SECOND_FEATURES", draft.rng.choice((16, 32)))
    y = draft.input((*running.shape()[:-1], second.name))
    weight = draft.input((few.name, running.size("F").name, second.name))
    return Call(args=(X, y, weight), axes="F")


def _matmul(draft: Draft, running: Running) -> Call:
    columns = draft.axis_size("F", "OUT_FEATURES")
    return Call(args=(X, draft.input((running.size("F").name, columns.name))), axes="F")


def _bmm(draft: Draft, running: Running) -> Call:
    columns = draft.axis_size("F", "OUT_FEATURES")
    shape = (running.size("N").name, running.size("F").name, columns.name)
    return Call(args=(X, draft.input(shape)), axes="F")


def _mv(draft: Draft, running: Running) -> Call:
    return Call(args=(X, draft.input((running.size("F").name,))), axes="F", layout="N")


def _addmm(draft: Draft, running: Running) -> Call:
    columns = draft.axis_size("F", "OUT_FEATURES")
    weight = draft.input((running.size("F").name, columns.name))
    bias = draft.input((columns.name,))
    return Call(args=(bias, X, weight), kwargs=(("alpha", 0.5), ("beta", 2.0)), axes="F")


def _baddbmm(draft: Draft, running: Running) -> Call:
    columns = draft.axis_size("F", "OUT_FEATURES")
    batch, rows, features = running.shape()
    weight = draft.input((batch, features, columns.name))
    bias = draft.input((batch, rows, columns.name))
    return Call(args=(bias, X, weight), kwargs=(("alpha", 0.1), ("beta", 1.5)), axes="F")


def _einsum(draft: Draft, running: Running) -> Call:
    """Scores between all pairs of positions, or a mix of channels."""
    if running.layout == "NLF":
        keys = draft.axis_size("L", "KEYS")
        y = draft.input((running.size("N").name, keys.name, running.size("F").name))
        return Call(args=("nlf,nkf->nlk", X, y), axes="F")
    if running.layout == "NALE":
        y = draft.input(
            (running.size("A").name, running.size("E").name, draft.axis_size("E", "OUT_DIM").name)
        )
        return Call(args=("nale,aed->nald", X, y), axes="E")
    y = draft.input((draft.axis_size("C", "OUT_CHANNELS").name, running.size("C").name))
    return Call(args=("nchw,dc->ndhw", X, y), axes="C")


def _tensordot(draft: Draft, running: Running) -> Call:
    return replace(_matmul(draft, running), kwargs=(("dims", 1),))


def _chain(draft: Draft, running: Running) -> Call:
    """Through a narrow matrix and back, as in a low-rank update."""
    rank, columns = draft.constant("RANK", 32), draft.axis_size("F", "OUT_FEATURES")
    down = draft.input((running.size("F").name, rank.name))
    return Call(args=((X, down, draft.input((rank.name, columns.name))),), axes="F")


def _cdist(draft: Draft, running: Running) -> Call:
    keys = draft.axis_size("L", "KEYS")
    shape = (running.size("N").name, keys.name, running.size("F").name)
    return Call(args=(X, draft.input(shape)), axes="F")


def _paired(operator: str, transfer: Transfer) -> Rule:
    """One number for each pair of rows."""

    def call(draft: Draft, running: Running) -> Call:
        y = draft.input(running.shape())
        dim: tuple[tuple[str, Argument], ...] = (("dim", -1),) if transfer is COSINE else ()
        layout = {"NF": "N", "NLF": "NF"}[running.layout]
        if is_module(operator):
            return Call(kwargs=dim, fed=(X, y), axes="F", layout=layout)
        return Call(args=(X, y), kwargs=dim, axes="F", layout=layout)

    refuses = ("rms",) if transfer is COSINE else ()
    return rule(operator, ("NF", "NLF"), call, transfer=transfer, named="NLF", refuses=refuses)


def _vecdot(draft: Draft, running: Running) -> Call:
    layout = {"NF": "N", "NLF": "NF", "NALE": "NCL"}[running.layout]
    return Call(args=(X, draft.input(running.shape())), axes=running.layout[-1], layout=layout)


def _product(
    operator: str, layouts: tuple[str, ...], call: CallDrawer, named: str = "NLFAEC", **options: object
) -> Rule:
    transfer = PROJECTED if is_module(operator) else CONTRACTED
    return rule(operator, layouts, call, transfer=transfer, named=named, **options)


RULES = (
    _product("torch.nn.Linear", ("NF", "NLF"), _linear, "F", shifts=True),
    _product("torch.nn.Bilinear", ("NF", "NLF"), _bilinear, "NLF", shifts=True),
    _product(_F + "linear", ("NF", "NLF"), _linear_with_given_weight, "F"),
    _product(_F + "bilinear", ("NF", "NLF"), _bilinear_with_given_weight, "NLF"),
    _product("torch.matmul", ("NF", "NLF"), _matmul, "F"),
    _product("torch.mm", ("NF",), _matmul, "F"),
    _product("torch.mv", ("NF",), _mv, "F"),
    _product("torch.bmm", ("NLF",), _bmm, "NF"),
    _product("torch.addmm", ("NF",), _addmm, "F"),
    _product("torch.baddbmm", ("NLF",), _baddbmm, "NLF"),
    _product("torch.einsum", ("NLF", "NCHW", "NALE"), _einsum, "NFCAE"),
    _product("torch.tensordot", ("NF", "NLF"), _tensordot, "F"),
    _product("torch.inner", ("NF", "NLF"), _linear_with_given_weight, "F"),
    _product("torch.linalg.multi_dot", ("NF",), _chain, "F"),
    _product("torch.linalg.vecdot", ("NF", "NLF", "NALE"), _vecdot, "NLFAE"),
    rule("torch.cdist", ("NLF",), _cdist, transfer=DISTANCE, named="NF", half=False),
    _paired("torch.nn.CosineSimilarity", COSINE),
    _paired("torch.nn.PairwiseDistance", DISTANCE),
    _paired(_F + "cosine_similarity", COSINE),
    _paired(_F + "pairwise_distance", DISTANCE),
)
