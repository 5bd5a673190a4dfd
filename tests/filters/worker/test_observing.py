import pytest
import torch

from filters.worker.observing import AtenTrace, OperatorTrace, labels, tensor_time_share
from tests.filters.models import passing_on


def facts(subject, body, inputs="[torch.randn(8, 16)]") -> dict:
    return labels(subject(body, inputs))


def of_expression(subject, expression, constructor="pass") -> dict:
    return facts(subject, passing_on(expression, constructor))


@pytest.mark.parametrize(
    ("expression", "constructor", "ops"),
    [
        ("x.sigmoid()", "pass", ["torch.sigmoid"]),
        ("self.act(x)", "self.act = nn.Sigmoid()", ["torch.nn.Sigmoid"]),
        ("F.elu(self.mix(x))", "self.mix = nn.Linear(16, 4)", ["torch.nn.Linear", "torch.nn.functional.elu"]),
        ("(x * 2 + 1).view(-1)", "pass", []),
        ("x.sin().sin()", "pass", ["torch.sin"]),
        ("self.drop(x.sin())", "self.drop = nn.Dropout(0.0)", ["torch.sin"]),
        ("self.all(x)", "self.all = nn.Sequential(nn.Tanh(), nn.Identity(), nn.ReLU())",
         ["torch.nn.Tanh", "torch.nn.ReLU"]),
        ("self.mha(x, x, x)[0]", "self.mha = nn.MultiheadAttention(16, 2)", ["torch.nn.MultiheadAttention"]),
    ],
)  # fmt: skip
def test_operators_that_ran(subject, expression, constructor, ops):
    found = of_expression(subject, expression, constructor)
    assert found["ops"] == ops
    assert found["ineffective_ops"] == []


@pytest.mark.parametrize(
    ("expression", "idle"),
    [
        ("torch.relu(torch.sigmoid(x))", ["torch.nn.functional.relu"]),
        ("torch.sigmoid(x).relu_()", ["torch.nn.functional.relu"]),
        ("F.relu(torch.sigmoid(x), inplace=True)", ["torch.nn.functional.relu"]),
        ("torch.clamp(torch.sigmoid(x), -1, 2)", ["torch.clamp"]),
        ("torch.abs(torch.exp(x))", ["torch.abs"]),
        ("(torch.tanh(x), x.sin())[1]", ["torch.tanh"]),
        ("(torch.topk(x, 3), x.sin())[1]", ["torch.topk"]),
        ("(x.argmax(-1), x.sin())[1]", ["torch.argmax"]),
        ("x.sin() + 0 * x.tanh()", ["torch.tanh"]),
        ("x.sin() + 1e-7 * x.tanh()", ["torch.tanh"]),
        ("torch.relu(x)", []),
        ("torch.topk(x, 3)[0]", []),
        ("torch.topk(x, 3)[1]", []),
        ("x.argmax(-1)", []),
        ("torch.cat([x.sin(), x.cos()], -1)", []),
        ("torch.isclose(x, x.sin())", []),
        ("torch.sigmoid(torch.relu(x))", []),
    ],
)
def test_operators_that_could_be_left_out(subject, expression, idle):
    assert of_expression(subject, expression)["ineffective_ops"] == idle


def test_modules_that_could_be_left_out(subject):
    constructor = "self.all = nn.Sequential(nn.Sigmoid(), nn.ReLU(inplace=True), nn.Hardtanh(-2, 2))"
    idle = of_expression(subject, "self.all(x)", constructor)["ineffective_ops"]
    assert idle == ["torch.nn.Hardtanh", "torch.nn.ReLU"]


def test_one_call_with_effect_is_enough(subject):
    assert of_expression(subject, "torch.relu(torch.relu(x))")["ineffective_ops"] == [
        "torch.nn.functional.relu"
    ]
    assert of_expression(subject, "torch.relu(torch.relu(x) - 0.5)")["ineffective_ops"] == []


def test_long_layers_are_not_probed(subject):
    found = of_expression(subject, "x" + ".sin()" * 13)
    assert found["ineffective_ops"] is None
    assert found["ops"] == ["torch.sin"]


def test_the_signature_has_every_call_in_order(subject):
    found = of_expression(subject, "F.relu(self.mix(x) * 2)", "self.mix = nn.Linear(16, 4)")
    assert found["signature"] == ["linear", "mul", "relu"]


def test_cost_of_a_matrix_product(subject):
    found = of_expression(subject, "self.mix(x)", "self.mix = nn.Linear(16, 4, bias=False)")
    assert found["flops"] == 2 * 8 * 16 * 4
    assert found["bytes"] == 4 * (8 * 16 + 16 * 4 + 8 * 4)
    assert "mm" in found["aten_ops"]


def test_expanded_dimensions_are_read_once():
    with AtenTrace() as trace:
        torch.ones(1, 1000).expand(500, 1000) + torch.ones(500, 1000)
    assert trace.bytes == 4 * (1000 + 500_000 + 500_000 + 500_000 + 1000)


def test_floating_dtypes_of_intermediate_results():
    with AtenTrace() as trace:
        (torch.ones(4).bfloat16() * 2).double().long()
    assert trace.dtypes == {torch.float32, torch.bfloat16, torch.float64}


def test_hooks_are_removed(subject):
    made = subject(
        "class Model(nn.Sequential):\n    def __init__(self):\n        super().__init__(nn.Linear(16, 4))"
    )
    with OperatorTrace(made.model).running():
        made.forward(made.fresh_inputs())
    assert not made.model[0]._forward_hooks
    assert not made.model[0]._forward_pre_hooks


def test_an_operator_inside_an_attention_without_key_mask(subject):
    body = """
    class Model(nn.Module):
        def forward(self, x):
            return F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True, is_causal=True)
    """
    found = facts(subject, body, "[torch.randn(2, 4, 8, 16)]")
    assert found["ops"] == ["torch.nn.functional.scaled_dot_product_attention"]


def test_time_outside_tensor_work_is_noticed(subject):
    forward = "class Model(nn.Module):\n    def forward(self, x):\n        "
    idle = forward + "[n * n for n in range(300_000)]\n        return x.sin()"
    busy = forward + "return x @ x @ x @ x"
    made = subject(idle)
    assert tensor_time_share(made, made.inputs) < 0.2
    made = subject(busy, "[torch.randn(700, 700)]")
    assert tensor_time_share(made, made.inputs) > 0.5
