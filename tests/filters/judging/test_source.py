import pytest

from filters.judging.source import source_finding
from filters.policy import Policy
from filters.reasons import Reason

PLAIN = """
class Model(nn.Module):
    def forward(self, x):
        return {expression}
"""


def finding(code: str):
    return source_finding(code, Policy())


@pytest.fixture
def finding_in_forward(task):
    def run(expression, imports=""):
        return finding(imports + "\n" + task(PLAIN.format(expression=expression)))

    return run


def test_a_plain_task_passes(finding_in_forward):
    assert finding_in_forward("torch.relu(x)") is None


def test_text_that_does_not_parse():
    assert finding("def broken(:").reason is Reason.SYNTAX


def test_text_that_parses_but_does_not_compile(task):
    assert finding(task("return 1\n")).reason is Reason.SYNTAX


def test_nul_character(task):
    assert finding(task(PLAIN.format(expression="x")) + "# \0").reason is Reason.SYNTAX


def test_lone_surrogate():
    found = finding("# \ud800")
    assert found.reason is Reason.SYNTAX
    assert found.evidence == {"error": "no UTF-8 at character 2"}


@pytest.mark.parametrize("expression", ["-" * 70_000 + "1", "(" * 300 + ")" * 300, "+".join(["1"] * 9000)])
def test_nesting_that_overflows_a_parser(expression):
    found = finding(f"x = {expression}"[: 30 * 1024])
    assert found.reason in (Reason.SYNTAX, Reason.CONTRACT)


def test_text_that_parses_but_is_too_deep_to_be_analysed(task):
    found = finding(task(PLAIN.format(expression="x" + " + x" * 900)))
    assert found.reason is Reason.SYNTAX
    assert "nested too deeply" in found.evidence["error"]


@pytest.mark.parametrize(
    "expression", ["F.dropout(x, 0.5)", "x + torch.randn_like(x)", "F.gumbel_softmax(x)"]
)
def test_random_numbers_in_forward(task, expression):
    found = finding(task(PLAIN.format(expression=expression)))
    assert found.reason is Reason.FORBIDDEN
    assert found.evidence["random"]


def test_size_is_counted_in_bytes(task):
    policy = Policy(source_kib_max=1)
    code = task(PLAIN.format(expression="x"))
    assert source_finding(code + "#" * (1024 - len(code)), policy) is None
    found = source_finding(code + "#" + "é" * ((1024 - len(code)) // 2 + 1), policy)
    assert found.reason is Reason.TOO_LARGE
    assert found.evidence["bytes"] > 1024


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("class Net(nn.Module): ...", "0 definitions of Model"),
        ("class Model(nn.Module): ...\nclass Model(nn.Module): ...", "2 definitions of Model"),
        ("class Model: ...", "Model has no base class"),
        ("class Model(nn.Module): ...\ndef get_inputs(): ...", "2 definitions of get_inputs"),
    ],
)
def test_contract(task, body, fault):
    found = finding(task(body))
    assert found.reason is Reason.CONTRACT
    assert found.evidence == {"faults": [fault]}


@pytest.mark.parametrize(
    ("imports", "expression", "evidence"),
    [
        ("import os", "x", "import os"),
        ("import numpy as np", "x", "import numpy"),
        ("from . import helper", "x", "import relative import"),
        ("import torch.utils.cpp_extension", "x", "import torch.utils.cpp_extension"),
        ("from torch import ops", "x", "import torch.ops"),
        ("from torch import os", "x", "import torch.os"),
        ("from torch import manual_seed", "x", "import torch.manual_seed"),
        ("import torch as t", "t.ops.aten.relu(x)", "t.ops"),
        ("", "torch._C._nn.gelu(x)", "torch._C"),
        ("", "torch.os.getpid()", "torch.os.getpid"),
        ("", "collections._sys.modules", "collections._sys"),
        ("", "open('weights').read()", "open"),
        ("", "__builtins__['open']", "__builtins__"),
        ("", "getattr(torch, 'relu')(x)", "getattr"),
        ("", "x.cuda()", "x.cuda"),
        ("", "x.to('cuda:0')", "device 'cuda:0'"),
        ("", "torch.zeros(2, device='cpu')", "device 'cpu'"),
        ("", "torch.manual_seed(0)", "torch.manual_seed"),
        ("", "torch.random.manual_seed(0)", "torch.random.manual_seed"),
        ("", "torch.compiler.is_compiling()", "torch.compiler.is_compiling"),
        ("", "self.compile()", "self.compile"),
        ("", "(lambda: x).__globals__", ".__globals__"),
        ("", "torch.linalg.eigh(x)", "torch.linalg.eigh"),
        ("", "x.svd()", "x.svd"),
        ("from torch.linalg import qr as split", "split(x)[0]", "split"),
    ],
)
def test_forbidden(finding_in_forward, imports, expression, evidence):
    found = finding_in_forward(expression, imports)
    assert found.reason is Reason.FORBIDDEN
    assert evidence in found.evidence["found"]


@pytest.mark.parametrize(
    ("imports", "expression"),
    [
        ("from __future__ import annotations", "x"),
        ("from typing import Optional", "x"),
        ("", "torch.zeros(2, device=x.device)"),
        ("", "torch.linalg.svdvals(x)"),
        ("", "torch.linalg.eigvalsh(x)"),
        ("", "self.seed + self.storage(x)"),
        ("", "x * torch.Generator().manual_seed(3).initial_seed()"),
        ("", "self.eval()"),
        ("", "'a // b # c' and x // 2"),
    ],
)
def test_allowed(finding_in_forward, imports, expression):
    assert finding_in_forward(expression, imports) is None


def test_names_of_builtins_may_be_used_for_values(task):
    body = """
    def hash(values):
        return values.sum()

    class Model(nn.Module):
        def forward(self, input, id):
            vars = [hash(input), id]
            return torch.stack(vars)
    """
    assert finding(task(body)) is None


def test_a_builtin_is_forbidden_where_the_name_is_free(task):
    body = """
    class Model(nn.Module):
        def weights(self, input):
            return input

        def forward(self, x):
            return self.weights(x) + input()
    """
    assert finding(task(body)).evidence == {"found": ["input"]}


def test_orthogonal_weights_may_be_drawn_by_a_helper_of_the_constructor(task):
    body = """
    def orthogonal(width):
        basis, _ = torch.linalg.qr(torch.randn(width, width))
        return basis

    class Model(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.weight = nn.Parameter(orthogonal(width))

        def forward(self, x):
            return x @ self.weight
    """
    assert finding(task(body)) is None


def test_a_helper_of_forward_may_not_use_eigenvectors(task):
    body = """
    class Model(nn.Module):
        def forward(self, x):
            return self.basis(x)

        def basis(self, x):
            return torch.linalg.eigh(x @ x.T)[1]
    """
    assert finding(task(body)).evidence == {"found": ["torch.linalg.eigh"]}


def test_state_by_global_and_nonlocal_statements(task):
    body = """
    calls = 0

    class Model(nn.Module):
        def forward(self, x):
            global calls
            calls += 1
            return x * calls
    """
    assert finding(task(body)).evidence == {"found": ["global calls"]}
