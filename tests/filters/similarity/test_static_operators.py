"""What is read off the source has to be what runs: each task is also run, under the worker's own trace."""

import types

import pytest
import torch

from composer.source_names import UnreadableCodeError
from filters.similarity.static_operators import (
    labels_absent_from_code,
    static_ops,
    static_random_calls,
    static_signature,
)
from filters.worker.observing import OperatorTrace

TASKS = {
    "members and functions": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.proj = nn.Linear(8, 8)
                self.scale = nn.Parameter(torch.ones(8))

            def forward(self, x):
                x = torch.tanh(self.proj(x)) * self.scale
                return F.softmax(x.abs(), dim=-1) - 0.5
    """,
    "containers": """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                inner = nn.Sequential(nn.Linear(8, 8), nn.GELU())
                self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), inner)
                self.more = nn.ModuleList([nn.LayerNorm(8) for _ in range(3)])
                self.named = nn.ModuleDict({"act": nn.SiLU(), "out": nn.Linear(8, 2)})

            def forward(self, x):
                for layer in self.body(x).unbind(0):
                    x = x + layer
                    break
                for place, norm in enumerate(self.more):
                    x = norm(x) if place else norm(x) * 2
                return self.named["out"](self.named["act"](x))
    """,
    "helpers and inheritance": """
        def gate(x, act=torch.sigmoid):
            return act(x) * x

        class Block(nn.Module):
            def __init__(self, width, act=None):
                super().__init__()
                self.inner = nn.Linear(width, width)
                self.act = act if act is not None else nn.Tanh()

            def forward(self, x):
                return self.act(self.inner(x))

        class Base(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks = nn.ModuleList()
                for width in (8, 8):
                    self.blocks.append(Block(width, nn.ReLU() if len(self.blocks) else None))

            def run(self, x):
                return [block(x) for block in self.blocks]

        class Model(Base):
            def forward(self, x):
                a, b = self.run(x)
                return gate(a @ b.T).mean()
    """,
    "branches on constants and mode": """
        class Model(nn.Module):
            def __init__(self, use_bias=False, mode="max"):
                super().__init__()
                self.use_bias, self.mode = use_bias, mode
                self.drop = nn.Dropout(0.5)
                self.bias = None

            def forward(self, x, y=None):
                if self.use_bias or self.bias is not None:
                    x = x + 1
                if self.mode == "max":
                    x = torch.max(x, dim=1).values
                else:
                    x = x.min()
                if self.training:
                    x = torch.bernoulli(x)
                if y is None:
                    y = torch.zeros_like(x)
                return F.dropout(self.drop(x), 0.5, self.training) + y
    """,
    "in-place, comparison, reflected arithmetic": """
        class Model(nn.Module):
            def forward(self, x):
                y = x.clone()
                y += 1
                y.mul_(2)
                mask = (y > 1) & ~(y == 2)
                return torch.where(mask, 1 - y, y ** 2).masked_fill(mask, 0.0)
    """,
    "views and sizes": """
        class Model(nn.Module):
            def forward(self, x):
                n, width = x.shape
                half = width // 2
                x = x.view(n, 2, half).permute(0, 2, 1).contiguous()
                return torch.flatten(x, 1) * (1.0 / half ** 0.5) + x.size(0)
    """,
    "subclass of a torch module": """
        class Scaled(nn.Linear):
            def forward(self, x):
                return super().forward(x) * 2

        class Plain(nn.Linear):
            pass

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = Scaled(8, 8), Plain(8, 8)

            def forward(self, x):
                return self.b(self.a(x))
    """,
}


@pytest.mark.parametrize("name", TASKS)
def test_what_is_read_is_what_runs(task, name):
    code = task(TASKS[name])
    if name == "subclass of a torch module":  # what a local forward calls is seen below the module
        code = code.replace("super().forward(x)", "F.linear(x, self.weight, self.bias)")
    module = types.ModuleType("task")
    exec(code, module.__dict__)  # written above
    model = module.Model(*module.get_init_inputs()).eval()
    inputs = module.get_inputs()
    trace = OperatorTrace(model)
    with torch.no_grad(), trace.running():
        model(*inputs)
    assert static_signature(code) == tuple(trace.signature)
    assert static_ops(code) == tuple(dict.fromkeys(trace.calls))


def test_arguments_come_from_the_task_itself(task):
    body = """
        class Model(nn.Module):
            def __init__(self, depth, act):
                super().__init__()
                self.layers = nn.Sequential(*[nn.Linear(8, 8) for _ in range(depth)])
                self.act = act

            def forward(self, x, twice):
                x = self.act(self.layers(x))
                return self.act(x) if twice else x
    """
    code = task(body, init="[2, nn.Tanh()]", inputs="[torch.rand(4, 8), True]")
    assert static_signature(code) == ("linear", "linear", "tanh", "tanh")
    assert static_ops(code) == ("torch.nn.Linear", "torch.nn.Tanh")
    assert static_signature(code.replace("True", "False")) == ("linear", "linear", "tanh")


def test_code_that_is_not_reached_does_not_count(task):
    body = """
        class Other(nn.Module):
            def forward(self, x):
                return x.exp()

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.idle = nn.GELU()

            def helper(self, x):
                return x.sin()

            def forward(self, x):
                return x.cos()
                return x.tan()
    """
    assert static_signature(task(body)) == ("cos",)


@pytest.mark.parametrize(
    ("call", "drawn"),
    [
        ("F.dropout(x, p=0.5)", ("torch.nn.functional.dropout",)),
        ("F.dropout(x, 0.5, True)", ("torch.nn.functional.dropout",)),
        ("F.dropout(x, 0.5, self.training)", ()),
        ("F.dropout(x, p=0.5, training=self.training)", ()),
        ("F.dropout2d(x, p=0.0)", ()),
        ("F.alpha_dropout(x)", ()),
        ("F.rrelu(x)", ()),
        ("F.rrelu(x, training=True)", ("torch.nn.functional.rrelu",)),
        ("self.drop(x)", ()),
        ("F.gumbel_softmax(x)", ("torch.nn.functional.gumbel_softmax",)),
        ("x + torch.randn_like(x)", ("torch.randn_like",)),
        ("x.bernoulli_()", ("torch.bernoulli",)),
        ("torch.normal(x, 1.0) + torch.normal(x, 2.0)", ("torch.normal",)),
        ("x.normal_()", ("torch.normal",)),
        ("self.weight * x", ()),
    ],
)
def test_random_calls_of_eval_mode(task, call, drawn):
    body = f"""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.drop = nn.Dropout(0.5)
                self.weight = nn.Parameter(torch.randn(8))

            def forward(self, x):
                return {call}
    """
    assert static_random_calls(task(body)) == drawn


def test_labels_absent_from_the_code(task):
    body = """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.ConvTranspose2d(3, 3, 3)
                self.loss = nn.L1Loss()

            def forward(self, x):
                x = self.conv(x).relu_() + 1
                return self.loss(x @ x, torch.multiply(x, 2))
    """
    present = (
        "nn.ConvTranspose2d",
        "F.conv_transpose2d",
        "nn.ReLU",
        "torch.add",
        "+",
        "F.l1_loss",
        "torch.mul",
    )
    absent = ("nn.ConvTranspose1d", "torch.bmm", "torch.diag", "-", "F.gelu")
    assert labels_absent_from_code(task(body), [*present, *absent, "torch.matmul", "nn.functional"]) == absent


@pytest.mark.parametrize(
    "body",
    [
        "class Model(nn.Module):\n    def forward(self, x):\n        return " + "x + " * 3000 + "x",
        "class Model(nn.Module):\n    def forward(self, x):\n        return self.forward(x)",
        "\n".join(
            ["def f0(x):\n    return x"]
            + [f"def f{n}(x):\n    return f{n - 1}(x) + f{n - 1}(x)" for n in range(1, 40)]
            + ["class Model(nn.Module):\n    def forward(self, x):\n        return f39(x)"]
        ),
    ],
    ids=["deep", "endless", "exponential"],
)
def test_code_made_to_exhaust_the_reader_is_refused(task, body):
    with pytest.raises(UnreadableCodeError):
        static_signature(task(body))


def test_lists_that_double_stay_short(task):
    doubling = "\n".join(["        l = [x]"] + ["        l = l + l; l.extend(l); l = [*l, *l]"] * 60)
    body = f"class Model(nn.Module):\n    def forward(self, x):\n{doubling}\n        return l[0].exp()"
    assert static_signature(task(body)) == ("exp",)


def test_code_without_a_model_has_no_operators():
    assert static_signature("x = 1") == ()
    assert static_ops("def get_inputs(): return []") == ()
