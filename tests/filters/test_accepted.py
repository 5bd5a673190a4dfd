"""Tasks that look odd and must be accepted, measured in real children; sizes are tiny."""

import pytest

from filters.reasons import Reason
from tests.filters.models import IMAGE, MIX, SEQUENCE, passing_on

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
