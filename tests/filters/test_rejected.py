"""Tasks that must be rejected, measured in real children, from the text to the reason; sizes are tiny."""

import pytest

from filters.reasons import Reason
from tests.filters.models import IMAGE, MIX, SEQUENCE, passing_on

REJECTED = {
    "constructor fails": (passing_on("x", "raise KeyError('width')"), "[]", Reason.INIT_FAILED),
    "inputs fail": (passing_on("x"), "[torch.randn(-1)]", Reason.INPUTS_FAILED),
    "inputs are no list": (passing_on("x"), "torch.randn(4)", Reason.CONTRACT),
    "same inputs in every draw": (passing_on("x.sin()"), "[torch.ones(4)]", Reason.FIXED_INPUTS),
    "forward fails": (passing_on("x @ x"), "[torch.randn(2, 3)]", Reason.FORWARD_FAILED),
    "index out of range": (
        passing_on("self.table(x)", "self.table = nn.Embedding(9, 4)"),
        "[torch.randint(9, 20, (8,))]",
        Reason.FORWARD_FAILED,
    ),
    "does not fit in memory": (passing_on("torch.ones(1 << 60)"), "[torch.randn(4)]", Reason.OUT_OF_MEMORY),
    "ends its process": ("import os\n" + passing_on("os._exit(0)"), "[torch.randn(4)]", Reason.CRASHED),
    "leaves quietly": ("import sys\nsys.exit(0)\n", "[]", Reason.CRASHED),
    "changes the default dtype": (
        "torch.set_default_dtype(torch.float64)\n" + passing_on("x.sin()"),
        None,
        Reason.SIDE_EFFECT,
    ),
    "patches a method that torch defines in C": (
        "torch.Tensor.sigmoid = lambda self: self\n" + passing_on("x.sin()"),
        None,
        Reason.SIDE_EFFECT,
    ),
    "patches a layer": (
        "nn.Linear.forward = lambda self, x: x * 2\n" + passing_on("self.mix(x)", MIX),
        None,
        Reason.SIDE_EFFECT,
    ),
    "hands its work to a thread": (
        """
        import threading

        class Model(nn.Module):
            def forward(self, x):
                y = torch.zeros_like(x)
                threading.Thread(target=lambda: y.copy_(x.sin()), daemon=True).start()
                return y
        """,
        None,
        Reason.SIDE_EFFECT,
    ),
    "writes a file": (passing_on("(open('notes', 'w').close(), x.sin())[1]"), None, Reason.SIDE_EFFECT),
    "overwrites tensors of others": (
        """
        import gc

        class Model(nn.Module):
            def forward(self, x):
                for other in gc.get_objects():
                    if type(other) is torch.Tensor and other.shape == x.shape and other is not x:
                        other.fill_(0)
                return x.sin()
        """,
        None,
        Reason.SIDE_EFFECT,
    ),
    "writes to its input": (passing_on("F.relu(x, inplace=True) + 1"), None, Reason.MUTATES_INPUT),
    "writes to its input and repairs it": (
        """
        class Model(nn.Module):
            def forward(self, x):
                y = x.add_(1).sin()
                x.sub_(1)
                return y
        """,
        None,
        Reason.MUTATES_INPUT,
    ),
    "draws noise": (passing_on("x + torch.randn_like(x)"), None, Reason.STOCHASTIC),
    "draws numbers that nobody uses": (passing_on("(torch.rand(2), x.sin())[1]"), None, Reason.STOCHASTIC),
    "drops in eval mode": (passing_on("F.dropout(x, 0.2)"), None, Reason.STOCHASTIC),
    "counts its calls": (
        """
        class Model(nn.Module):
            calls = 0

            def forward(self, x):
                self.calls += 1
                return x.sin() * (1 + self.calls // 100)
        """,
        None,
        Reason.STATEFUL,
    ),
    "remembers the largest input": (
        """
        class Model(nn.Module):
            highest = 0.0

            def forward(self, x):
                self.highest = max(self.highest, float(x.amax()))
                return x / self.highest
        """,
        "[torch.randn(8, 16) * torch.randint(1, 9, ())]",
        Reason.STATEFUL,
    ),
    "assigns twice to one place": (
        passing_on(
            "torch.zeros(8, 4).scatter(1, self.index, x)",
            "self.register_buffer('index', (torch.arange(16) % 4).expand(8, 16))",
        ),
        None,
        Reason.NONDETERMINISTIC,
    ),
    "depends on the hash of a string": (
        passing_on("x.sin() * (1 + hash('a name') % 1009)"),
        None,
        Reason.NONDETERMINISTIC,
    ),
    "iterates a set of two layers": (
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = {nn.Linear(16, 16), nn.LayerNorm(16)}

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x
        """,
        None,
        Reason.NONDETERMINISTIC,
    ),
    "returns memory as it finds it": (
        passing_on("x.sin() + torch.empty(8, 16) * 1e-9"),
        None,
        Reason.NONDETERMINISTIC,
    ),
    "returns a number": (passing_on("float(x.sum())"), None, Reason.UNSUPPORTED_OUTPUT),
    "returns a sparse tensor": (passing_on("x.relu().to_sparse()"), None, Reason.UNSUPPORTED_OUTPUT),
    "returns a masked tensor": (
        passing_on("torch.masked.masked_tensor(x, x > 0)"),
        None,
        Reason.UNSUPPORTED_OUTPUT,
    ),
    "returns nothing": (passing_on("(None, None)"), None, Reason.UNSUPPORTED_OUTPUT),
    "a part of the output is empty": (passing_on("(x.sin(), x[:0])"), None, Reason.EMPTY_OUTPUT),
    "a part of the output is NaN": (
        passing_on(
            "torch.softmax(x.masked_fill(self.hidden, -torch.inf), -1)",
            "self.register_buffer('hidden', torch.arange(8)[:, None].expand(8, 16) > 5)",
        ),
        None,
        Reason.NON_FINITE,
    ),
    "sums to one": (passing_on("torch.softmax(x, -1).sum(-1)"), None, Reason.CONSTANT_OUTPUT),
    "every truth value is true": (passing_on("x.exp() > 0"), None, Reason.CONSTANT_OUTPUT),
    "large counts that differ by little": (
        passing_on("(x > 0).sum(-1)"),
        "[torch.randn(8, 1_000_000)]",
        Reason.CONSTANT_OUTPUT,
    ),
    "every sample gets the same": (
        passing_on("x.mean(0, keepdim=True).expand(8, 16).sin() * 9"),
        None,
        Reason.CONSTANT_OUTPUT,
    ),
    "probabilities of many classes": (
        passing_on("torch.softmax(x, -1)"),
        "[torch.randn(4, 9000)]",
        Reason.VANISHING_OUTPUT,
    ),
    "mean of what was just normalised": (
        passing_on("F.group_norm(x, 2).mean((1, 2, 3))"),
        IMAGE,
        Reason.VANISHING_OUTPUT,
    ),
    "undoes itself": (passing_on("torch.log(torch.exp(x))"), None, Reason.IDENTITY_OUTPUT),
    "returns a view": (passing_on("x.t()[2:]"), None, Reason.IDENTITY_OUTPUT),
    "adds next to nothing to its input": (
        passing_on("x + 1e-6 * self.mix(x).tanh()", MIX),
        None,
        Reason.IDENTITY_OUTPUT,
    ),
    "an input counts for nothing": (
        passing_on("x.sin() + 0 * y", arguments="x, y"),
        "[torch.randn(4), torch.randn(4)]",
        Reason.INPUT_IGNORED,
    ),
    "a fixed input counts for nothing": (
        passing_on("x.sin()", arguments="x, mask"),
        "[torch.randn(4), torch.ones(4) > 0]",
        Reason.INPUT_IGNORED,
    ),
    "one of a pair counts for nothing": (
        passing_on("pair[0].sin()", arguments="pair"),
        "[(torch.randn(4), torch.randn(4))]",
        Reason.INPUT_IGNORED,
    ),
    "a layer that is never called": (passing_on("x.sin()", MIX), None, Reason.PARAMETER_IGNORED),
    "six operators": (passing_on("x.sin().cos().tan().sinh().atan().tanh()"), None, Reason.TOO_MANY_OPS),
    "does not compile to a graph": (
        passing_on("self.recurrent(x)[0]", "self.recurrent = nn.GRU(16, 4)"),
        SEQUENCE,
        Reason.NOT_COMPILED,
    ),
    "variance by the difference of squares": (
        passing_on("((x + 1e4) ** 2).mean(-1) - (x + 1e4).mean(-1) ** 2"),
        None,
        Reason.ILL_CONDITIONED,
    ),
    "computes something else when compiled": (
        passing_on("x.sin() if torch.compiler.is_compiling() else x.cos()"),
        None,
        Reason.COMPILE_MISMATCH,
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(check, name):
    body, inputs, reason = REJECTED[name]
    verdict = check(body, inputs or "[torch.randn(8, 16)]")
    assert verdict.reason is reason, verdict.evidence
    assert verdict.outcome == "rejected"
    assert verdict.stage is not None
    assert verdict.evidence or reason is Reason.STATEFUL
