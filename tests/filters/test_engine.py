"""Tasks measured in real children, from the text to the reason; sizes are tiny."""

import pytest
import torch

from filters.judge import judge
from filters.policy import Policy
from filters.reasons import Reason, Stage


def passing_on(expression: str, constructor: str = "pass", arguments: str = "x") -> str:
    return f"""
class Model(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        {constructor}

    def forward(self, {arguments}):
        return {expression}
"""


MIX = "self.mix = nn.Linear(16, 16)"
IMAGE = "[torch.randn(4, 8, 12, 12)]"
SEQUENCE = "[torch.randn(2, 10, 16)]"

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


ACCEPTED = {
    "a layer": (passing_on("self.mix(x).sigmoid()", MIX), None),
    "no constructor, no parameters": (
        "class Model(nn.Module):\n    def forward(self, x):\n        return x.sin() * x",
        None,
    ),
    "several classes, the last is not the model": (
        """
        class Block(nn.Module):
            def forward(self, x):
                return x.sin()

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = Block()

            def forward(self, x):
                return helper(self.block(x))

        def helper(x):
            return x.cumsum(-1)

        class Unused(Model):
            pass
        """,
        None,
    ),
    "None inside the result": (passing_on("(x.sin(), None, {'a': x.cos()})"), None),
    "named tuple of torch": (passing_on("torch.sort(x, -1)"), None),
    "own named tuple": (
        "Pair = collections.namedtuple('Pair', 'left right')\n" + passing_on("Pair(x.sin(), x.cos())"),
        None,
    ),
    "named tuple as input": (
        "Pair = collections.namedtuple('Pair', 'left right')\n"
        + passing_on("pair.left.sin() * pair.right", arguments="pair"),
        "[Pair(torch.randn(8), torch.randn(8))]",
    ),
    "numbers and None among the inputs": (
        passing_on("x.roll(n, -1).mul(s).sinh() if flag else x", arguments="x, n, s, flag, mask"),
        "[torch.randn(8, 16), 3, 0.7, True, None]",
    ),
    "dictionary as input": (
        passing_on("d['a'].sin() + d['b']", arguments="d"),
        "[{'a': torch.randn(8), 'b': torch.randn(8)}]",
    ),
    "integer output": (passing_on("self.mix(x).argmax(-1)", MIX), None),
    "truth values": (passing_on("(x.sin() > 0.2) & (x < 1)"), None),
    "complex output": (passing_on("torch.fft.rfft(x).conj()"), None),
    "complex parameters": (
        passing_on(
            "torch.fft.irfft(torch.fft.rfft(x) * self.filter, n=16)",
            "self.filter = nn.Parameter(torch.randn(9, dtype=torch.cfloat))",
        ),
        None,
    ),
    "scalar that varies": (passing_on("(x.sum() * 3).sin()"), None),
    "buffer of minus infinity": (
        passing_on(
            "torch.softmax(x @ x.T + self.mask, -1) @ x",
            "self.register_buffer('mask', torch.full((8, 8), -torch.inf).triu(1))",
        ),
        None,
    ),
    "NaN that is repaired inside": (
        passing_on(
            "torch.nan_to_num(torch.softmax(x.masked_fill(self.hidden, -torch.inf), -1))",
            "self.register_buffer('hidden', torch.arange(8)[:, None].expand(8, 16) > 5)",
        ),
        None,
    ),
    "batch norm in train mode differs": (
        passing_on(
            "self.norm(self.conv(x)).relu()", "self.conv = nn.Conv2d(8, 4, 3); self.norm = nn.BatchNorm2d(4)"
        ),
        IMAGE,
    ),
    "dropout that never drops": (passing_on("self.drop(x.sin())", "self.drop = nn.Dropout(0.0)"), None),
    "dropout that follows the mode": (passing_on("F.dropout(x.sin(), 0.3, self.training)"), None),
    "table made by the first call": (
        """
        class Model(nn.Module):
            table = None

            def forward(self, x):
                if self.table is None:
                    self.table = torch.arange(x.shape[-1], device=x.device).cos()
                return x * self.table
        """,
        None,
    ),
    "strided inputs and a strided result": (
        passing_on("(x.sin() * y)[:, ::2].t()", arguments="x, y"),
        "[torch.randn(16, 8).t(), torch.randn(8, 32)[:, ::2]]",
    ),
    "inputs that share memory": (
        passing_on("torch.softmax(a, -1) @ b", arguments="a, b"),
        "(lambda both: [both[0], both[1]])(torch.randn(2, 16, 16))",
    ),
    "bag of embeddings with fixed offsets": (
        passing_on("self.bag(ids, offsets)", "self.bag = nn.EmbeddingBag(50, 8)", "ids, offsets"),
        "[torch.randint(0, 50, (40,)), torch.arange(0, 40, 5)]",
    ),
    "orthogonal weights": (
        passing_on("x @ self.basis", "self.basis = nn.Parameter(torch.linalg.qr(torch.randn(16, 16))[0])"),
        None,
    ),
    "mask that hits few elements": (
        passing_on("torch.where(mask, x, x.cos())", arguments="x, mask"),
        "[torch.randn(64, 64), torch.rand(64, 64) > 0.999]",
    ),
    "causal mask that is the same in every draw": (
        passing_on("(x @ x.T).masked_fill(mask, -torch.inf).softmax(-1) @ x", arguments="x, mask"),
        "[torch.randn(8, 16), torch.ones(8, 8).triu(1) > 0]",
    ),
    "number of samples that varies": (passing_on("x[x > 0].sin()"), "[torch.randn(64)]"),
    "one sample": (passing_on("self.mix(x).relu()", MIX), "[torch.randn(1, 16)]"),
    "writes to its own intermediates": (
        """
        class Model(nn.Module):
            def forward(self, x):
                y = x * 2
                y.add_(1).relu_()
                y[:, 0] = 0.5
                return y
        """,
        None,
    ),
    "scatter through a permutation": (
        passing_on(
            "torch.zeros(8, 16).scatter(1, self.index, x.sinh())",
            "self.register_buffer('index', torch.randperm(16).expand(8, 16))",
        ),
        None,
    ),
    "sorted set": (passing_on("sum(x ** n for n in sorted({1, 2, 3}))"), None),
    "weights that are shared": (
        passing_on(
            "F.linear(torch.tanh(self.table(ids)), self.table.weight)",
            "self.table = nn.Embedding(50, 16)",
            "ids",
        ),
        "[torch.randint(0, 50, (8, 12))]",
    ),
    "double precision": (passing_on("torch.logsumexp(x @ x.T, -1)"), "[torch.randn(8, 16).double()]"),
    "half precision": (
        passing_on("F.gelu(self.mix(x))", MIX + ".bfloat16()"),
        "[torch.randn(8, 16).bfloat16()]",
    ),
    "half precision inside": (passing_on("(x.bfloat16() * 1.7).tanh().float()"), None),
    "prints": (passing_on("(print('y' * 9999, flush=True), x.sin())[1]"), None),
    "gradient inside": (passing_on("torch.func.vmap(torch.func.grad(lambda z: (z ** 3).sum()))(x)"), None),
    "data-dependent branch": (passing_on("x.sin() if float(x.sum()) > 0 else x.sin() * 2"), None),
    "grouped attention": (
        passing_on("F.scaled_dot_product_attention(q, k, k, enable_gqa=True)", arguments="q, k"),
        "[torch.randn(2, 8, 16, 16), torch.randn(2, 2, 16, 16)]",
    ),
    "stack of library layers": (
        passing_on(
            "self.encoder(x)",
            "self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 2)",
        ),
        SEQUENCE,
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(check, name):
    body, inputs = ACCEPTED[name]
    verdict = check(body, inputs or "[torch.randn(8, 16)]")
    assert verdict.reason is Reason.ACCEPTED, verdict.evidence


def test_all_facts_of_an_accepted_task(measure):
    _, found = measure(
        """
        class Model(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.mix = nn.Linear(16, width)

            def forward(self, x):
                return F.gelu(self.mix(x))
        """,
        init="[4]",
    )
    assert found.fault is None
    assert found.stages_done == (
        *("build", "conduct", "repeatability", "output", "degenerate", "labels"),
        *("runtime", "compile", "compare"),
    )
    assert found.input_shapes == ((8, 16),)
    assert found.output_shapes == ((8, 4),)
    assert found.output_dtypes == ("float32",)
    assert found.n_params == 68
    assert found.ops == ("torch.nn.Linear", "torch.nn.functional.gelu")
    assert found.signature == ("linear", "gelu")
    assert found.flops == 2 * 8 * 16 * 4
    assert found.train_eval_same is True
    assert found.compared_with == "fp64"
    assert (found.graphs, found.graph_breaks) == (1, 0)
    assert 10 <= found.eager_samples <= 30
    assert found.side_effects == ()


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        (("torch.nn.Linear", "F.relu"), Reason.ACCEPTED),
        (("torch.nn.Linear", "torch.tanh"), Reason.LABEL_MISMATCH),
        (("torch.nn.Dropout",), Reason.LABEL_MISMATCH),
        (("torch.abs",), Reason.OPERATOR_IGNORED),
    ],
)
def test_requested_operators(check, requested, reason):
    body = passing_on("self.drop(self.mix(x).relu()).abs()", MIX + "; self.drop = nn.Dropout(0.5)")
    verdict = check(body, requested_ops=requested)
    assert verdict.reason is reason
    assert verdict.stage is (None if reason is Reason.ACCEPTED else Stage.LABELS)


def test_a_whole_layer_may_be_long(check):
    body = passing_on("x.sin().cos().tan().sinh().atan().tanh()")
    assert check(body, data_source="transformers").reason is Reason.ACCEPTED


def test_an_unrolled_loop_is_no_layer(check):
    body = """
    class Model(nn.Module):
        def forward(self, x):
            for step in range(2100):
                x = x * 0.999
            return x
    """
    verdict = check(body, data_source="transformers")
    assert verdict.reason is Reason.TOO_MANY_OPS
    assert verdict.evidence == {"aten_nodes": 2100}


def test_runtime_is_judged_from_one_measurement(measure):
    body = """
    class Model(nn.Module):
        def forward(self, x):
            for step in range(300_000):
                pass
            return x * x
    """
    candidate, found = measure(body)
    for changed, reason in (
        ({"eager_ms_min": 1e5}, Reason.TOO_FAST),
        ({"eager_ms_max": 1e-4}, Reason.TOO_SLOW),
        ({"tensor_time_share_min": 0.5}, Reason.PADDED),
    ):
        policy = Policy(
            **({"eager_ms_min": 0.0, "eager_ms_max": 1e6, "tensor_time_share_min": 0.0} | changed)
        )
        verdict = judge(candidate, found, policy, skip_source_filters=True)
        assert verdict.reason is reason
        assert verdict.stage is Stage.RUNTIME


def test_recorded_times_take_the_place_of_measured_ones(engine, measure, monkeypatch):
    body = passing_on("x.sin()")
    candidate, _ = measure(body)
    times = {
        **{"eager_ms": 12.5, "eager_ms_iqr": 0.5, "eager_samples": 7, "tensor_time_share": 0.75},
        **{"compile_ms": 6.5, "compile_ms_iqr": 0.25, "compile_samples": 9},
    }
    monkeypatch.setattr(engine, "_timings", {candidate.id: times})
    found = engine.measure(candidate)
    assert {name: getattr(found, name) for name in times} == times


def test_the_same_task_is_measured_alike_every_time(measure):
    body = passing_on("self.mix(x).softmax(-1)", MIX)
    first, second = (measure(body)[1] for _ in range(2))
    assert first.output_digest == second.output_digest
    assert first.eager_error == second.eager_error


def test_the_environment_names_the_machine(engine):
    assert engine.environment.torch_version == torch.__version__
    assert engine.environment.compile_backend == "aot_eager"
    assert len(engine.environment.key) == 16
