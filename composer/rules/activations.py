"""Activations: modules and functions, element-wise but for the gated linear unit."""

from composer.draft import Draft, Running
from composer.plan import X
from composer.rules.rule import Call, Rule, is_module, plain, rule
from composer.values import GATED, LEAKING

_F = "torch.nn.functional."


def _glu(operator: str) -> Rule:
    def call(draft: Draft, running: Running) -> Call | None:
        letter = "C" if "C" in running.layout else "F" if "F" in running.layout else "E"
        if not draft.divisors(running.size(letter), (2,)):
            return None
        dim = ("dim", running.axis(letter))
        return Call(kwargs=(dim,)) if is_module(operator) else Call(args=(X,), kwargs=(dim,))

    return rule(operator, ("NF", "NLF", "NCL", "NCHW", "NCDHW", "NALE"), call, transfer=GATED, named="FCE")


def _prelu(draft: Draft, running: Running) -> Call:
    """One learned slope per channel comes as an input."""
    return Call(args=(X, draft.input((running.size(running.layout[1]).name,), "unit")))


RULES = (
    plain("torch.nn.CELU", kwargs={"alpha": 0.6}),
    plain("torch.nn.ELU", kwargs={"alpha": 0.7}),
    plain("torch.nn.GELU"),
    plain("torch.nn.Hardshrink", 0.6, jumps=True),
    plain("torch.nn.Hardsigmoid"),
    plain("torch.nn.Hardswish"),
    plain("torch.nn.Hardtanh", kwargs={"min_val": -0.8, "max_val": 1.2}, exact=True),
    plain("torch.nn.LeakyReLU", 0.2),
    plain("torch.nn.LogSigmoid"),
    plain("torch.nn.Mish"),
    plain("torch.nn.PReLU"),
    plain("torch.nn.ReLU", exact=True),
    plain("torch.nn.ReLU6", exact=True),
    plain("torch.nn.SELU"),
    plain("torch.nn.SiLU"),
    plain("torch.nn.Sigmoid"),
    plain("torch.nn.Softplus", kwargs={"beta": 1.5}),
    plain("torch.nn.Softshrink", 0.4),
    plain("torch.nn.Softsign"),
    plain("torch.nn.Tanh"),
    plain("torch.nn.Tanhshrink"),
    plain("torch.nn.Threshold", 0.3, -0.2, jumps=True),
    _glu("torch.nn.GLU"),
    plain(_F + "celu", kwargs={"alpha": 1.4}),
    plain(_F + "elu", kwargs={"alpha": 0.5}),
    plain(_F + "gelu", kwargs={"approximate": "tanh"}),
    plain(_F + "hardshrink", 0.7, jumps=True),
    plain(_F + "hardsigmoid"),
    plain(_F + "hardswish"),
    plain(_F + "hardtanh", -1.1, 0.9, exact=True),
    plain(_F + "leaky_relu", kwargs={"negative_slope": 0.2}),
    plain(_F + "logsigmoid"),
    plain(_F + "mish"),
    rule(_F + "prelu", ("NF", "NCL", "NCHW", "NCDHW"), _prelu, transfer=LEAKING, named="FC"),
    plain(_F + "relu", exact=True),
    plain(_F + "relu6", exact=True),
    plain(_F + "selu"),
    plain(_F + "silu"),
    plain(_F + "softplus"),
    plain(_F + "softshrink", 0.3),
    plain(_F + "softsign"),
    plain(_F + "tanhshrink"),
    plain(_F + "threshold", -0.2, -1.0, jumps=True),
    plain("torch.sigmoid"),
    plain("torch.tanh"),
    _glu(_F + "glu"),
)
