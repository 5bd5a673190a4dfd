"""Recurrent layers, the batch first, and single steps of them. Of several results the states count."""

from composer.draft import Draft, Running
from composer.plan import Argument, X
from composer.rules.rule import Call, rule
from composer.values import RECURRENT

_BATCH_FIRST: tuple[str, Argument] = ("batch_first", True)


def _recurrent(draft: Draft, running: Running) -> Call:
    hidden = draft.axis_size("F", "HIDDEN_SIZE")
    kwargs = [_BATCH_FIRST]
    if draft.rng.random() < 0.25:
        kwargs.append(("bidirectional", True))
    return Call(args=(running.size("F"), hidden), kwargs=tuple(kwargs), axes="F")


def _lstm_cell(draft: Draft, running: Running) -> Call:
    """One step from hidden and cell states that are inputs."""
    hidden = draft.axis_size("F", "HIDDEN_SIZE")
    shape = (running.size("N").name, hidden.name)
    return Call(args=(running.size("F"), hidden), fed=(X, (draft.input(shape), draft.input(shape))), axes="F")


def _cell(draft: Draft, running: Running) -> Call:
    """One step from a state that is an input."""
    hidden = draft.axis_size("F", "HIDDEN_SIZE")
    state = draft.input((running.size("N").name, hidden.name))
    return Call(args=(running.size("F"), hidden), fed=(X, state), axes="F")


RULES = (
    rule("torch.nn.LSTM", ("NLF",), _recurrent, transfer=RECURRENT, named="F", suffix="[0]"),
    rule("torch.nn.GRU", ("NLF",), _recurrent, transfer=RECURRENT, named="F", suffix="[0]"),
    rule("torch.nn.RNN", ("NLF",), _recurrent, transfer=RECURRENT, named="F", suffix="[0]"),
    rule("torch.nn.LSTMCell", ("NF",), _lstm_cell, transfer=RECURRENT, named="NF", suffix="[0]"),
    rule("torch.nn.GRUCell", ("NF",), _cell, transfer=RECURRENT, named="NF"),
    rule("torch.nn.RNNCell", ("NF",), _cell, transfer=RECURRENT, named="NF"),
)
