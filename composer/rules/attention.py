"""Attention, and whole layers around it; recurrent layers. All take the batch first."""

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import Call, rule
from composer.values import ATTENDED, RECURRENT, SELF_ATTENDED, STANDARDISED

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


def _recurrent(draft: Draft, running: Running) -> Call:
    hidden = draft.axis_size("F", "HIDDEN_SIZE")
    kwargs = [_BATCH_FIRST]
    if draft.rng.random() < 0.25:
        kwargs.append(("bidirectional", True))
    return Call(args=(running.size("F"), hidden), kwargs=tuple(kwargs), axes="F")


def _cell(draft: Draft, running: Running) -> Call:
    """One step from a state that is an input; an LSTM starts from zeros."""
    return Call(args=(running.size("F"), draft.axis_size("F", "HIDDEN_SIZE")), axes="F")


def _cell_with_state(draft: Draft, running: Running) -> Call:
    hidden = draft.axis_size("F", "HIDDEN_SIZE")
    state = draft.input((running.size("N").name, hidden.name))
    return Call(args=(running.size("F"), hidden), fed=(X, state), axes="F")


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
    rule("torch.nn.TransformerEncoderLayer", ("NLF",), _encoder_layer, transfer=STANDARDISED, named="F"),
    rule("torch.nn.TransformerDecoderLayer", ("NLF",), _decoder_layer, transfer=STANDARDISED, named="NF"),
)

RECURRENT_RULES = (
    rule("torch.nn.LSTM", ("NLF",), _recurrent, transfer=RECURRENT, named="F", suffix="[0]"),
    rule("torch.nn.GRU", ("NLF",), _recurrent, transfer=RECURRENT, named="F", suffix="[0]"),
    rule("torch.nn.RNN", ("NLF",), _recurrent, transfer=RECURRENT, named="F", suffix="[0]"),
    rule("torch.nn.LSTMCell", ("NF",), _cell, transfer=RECURRENT, named="F", suffix="[0]"),
    rule("torch.nn.GRUCell", ("NF",), _cell_with_state, transfer=RECURRENT, named="NF"),
    rule("torch.nn.RNNCell", ("NF",), _cell_with_state, transfer=RECURRENT, named="NF"),
)
