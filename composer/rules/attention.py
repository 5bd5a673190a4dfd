"""Attention, and whole layers around it, the batch first."""

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import Call, rule
from composer.values import ATTENDED, ENCODED, SELF_ATTENDED

_BATCH_FIRST: tuple[str, Argument] = ("batch_first", True)


def _heads(draft: Draft, running: Running) -> Argument:
    return draft.constant("NUM_HEADS", draft.rng.choice(draft.divisors(running.size("F"), (1, 2, 4, 8))))


def _scaled_dot_product(draft: Draft, running: Running) -> Call:
    """The running value asks; keys and values are inputs, of one length of their own unless it is causal."""
    batch, heads, length, features = running.shape()
    causal = draft.rng.random() < 0.4
    keys = length if causal else draft.axis_size("L", "KEYS").name
    shape = (batch, heads, keys, features)
    kwargs: tuple[tuple[str, Argument], ...] = (("is_causal", True),) if causal else ()
    return Call(args=(X, draft.input(shape), draft.input(shape)), kwargs=kwargs, axes="L")


def _multi_head(draft: Draft, running: Running) -> Call:
    """Attention of a sequence to itself or to another one."""
    if draft.rng.random() < 0.6:
        fed: tuple[Argument, ...] = (X, X, X)
    else:
        keys = draft.axis_size("L", "KEYS")
        other = draft.input((running.size("N").name, keys.name, running.size("F").name))
        fed = (X, other, other)
    return Call(
        args=(running.size("F"), _heads(draft, running)),
        kwargs=(_BATCH_FIRST,),
        fed=fed,
        fed_kwargs=(("need_weights", False),),
        axes="L",
    )


def _layer_arguments(draft: Draft, running: Running) -> tuple[Argument, ...]:
    return running.size("F"), _heads(draft, running), draft.axis_size("F", "FEEDFORWARD")


def _encoder_layer(draft: Draft, running: Running) -> Call:
    args = _layer_arguments(draft, running)
    return Call(args=args, kwargs=(("dropout", 0.0), _BATCH_FIRST), axes="F")


def _decoder_layer(draft: Draft, running: Running) -> Call:
    args = _layer_arguments(draft, running)
    memory = draft.axis_size("L", "MEMORY")
    other = draft.input((running.size("N").name, memory.name, running.size("F").name))
    return Call(args=args, kwargs=(("dropout", 0.0), _BATCH_FIRST), fed=(X, other), axes="F")


RULES = (
    rule(
        "torch.nn.functional.scaled_dot_product_attention",
        ("NALE",),
        _scaled_dot_product,
        transfer=ATTENDED,
        named="NALE",
    ),
    rule(
        "torch.nn.MultiheadAttention",
        ("NLF",),
        _multi_head,
        transfer=SELF_ATTENDED,
        named="NF",
        suffix="[0]",
        shifts=True,
    ),
    rule("torch.nn.TransformerEncoderLayer", ("NLF",), _encoder_layer, transfer=ENCODED, named="F"),
    rule("torch.nn.TransformerDecoderLayer", ("NLF",), _decoder_layer, transfer=ENCODED, named="NF"),
)
