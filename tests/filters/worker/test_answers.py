import collections

import pytest
import torch
from torch.masked import masked_tensor

from filters.worker.answers import TrivialAnswers, degenerate, disturbed, has_effect, output

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

X = torch.randn(8, 16)
Pair = collections.namedtuple("Pair", "values indices")


def passing(*draws, inputs=None) -> list[str]:
    """Challenge the trivial answers with the right outputs of several draws."""
    trivial = TrivialAnswers(1e-2)
    for number, right in enumerate(draws):
        trivial.challenge(inputs[number] if inputs else [], list(right))
    return trivial.passing()


def test_varied_outputs_take_work():
    assert passing([torch.randn(8)], [torch.randn(8)]) == []


@pytest.mark.parametrize(
    "small",
    [torch.full((8,), 9e-3), torch.rand(8) * 1e-3, torch.randn(8).mul(1e-4).bfloat16(), torch.tensor(1e-9)],
)
def test_zeros_pass_for_what_is_below_the_tolerance(small):
    assert "zeros" in passing([small], [-small])


def test_a_constant_passes_for_what_varies_by_less_than_a_percent():
    draws = [torch.randn(1000) + 1000 for _ in range(5)]
    assert passing(*[[d] for d in draws]) == ["constant", "other_draw"]


def test_the_output_of_another_draw_passes_where_inputs_do_not_count():
    fixed = torch.randn(8)
    assert passing([fixed], [fixed.clone()]) == ["other_draw"]


def test_an_answer_must_pass_on_every_draw():
    assert passing([torch.zeros(4)], [torch.zeros(4)], [torch.ones(4)]) == []


def test_the_input_passes_for_itself_and_for_what_is_close():
    inputs = [[torch.randn(8)] for _ in range(2)]
    assert passing(*[[x[0] + 1e-4] for x in inputs], inputs=inputs) == ["input"]


def test_a_view_of_an_input_is_the_input():
    inputs = [[torch.randn(4, 6)] for _ in range(2)]
    assert passing(*[[x[0].t()[1:]] for x in inputs], inputs=inputs) == ["input"]


def test_all_leaves_must_be_trivial_to_reject():
    trivial, real = torch.zeros(4), [torch.randn(4), torch.randn(4)]
    assert passing([trivial, real[0]], [trivial, real[1]]) == []


def test_each_leaf_may_have_its_own_trivial_answer():
    inputs = [[torch.randn(4)] for _ in range(2)]
    draws = [[x[0].clone(), torch.zeros(3)] for x in inputs]
    assert "input" in passing(*draws, inputs=inputs)


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ([[7, 7, 7], [7, 7, 7]], ["constant", "other_draw"]),
        ([[0, 0, 0], [0, 0, 0]], ["constant", "other_draw", "zeros"]),
        ([[1, 2, 3], [3, 1, 2]], []),
        ([[100_000, 100_003], [100_002, 100_001]], ["constant", "other_draw"]),
        ([[7, 7, 7], [7, 7, 8]], []),
    ],
)
def test_integers_pass_like_for_allclose(draws, expected):
    assert passing(*[[torch.tensor(d)] for d in draws]) == expected


def test_truth_values_must_be_equal():
    mostly = torch.zeros(1000, dtype=torch.bool)
    other = mostly.clone()
    other[5] = True
    assert passing([mostly], [mostly.clone()]) == ["constant", "other_draw", "zeros"]
    assert passing([mostly], [other]) == []


def test_complex_outputs():
    turning = torch.polar(torch.ones(64), torch.rand(64) * 6)
    assert passing([turning], [turning.roll(1)]) == []
    still = torch.full((8,), 1 + 2j)
    assert passing([still], [still.clone()]) == ["constant", "other_draw"]


def test_a_scalar_is_judged_over_the_draws():
    assert passing([torch.tensor(0.3)], [torch.tensor(0.7)]) == []
    assert passing([torch.tensor(5.30)], [torch.tensor(5.31)]) == ["constant", "other_draw"]


def test_shapes_and_numbers_of_leaves_may_depend_on_the_draw():
    assert passing([torch.ones(3)], [torch.ones(5)]) == []
    assert passing([torch.ones(3)], [torch.ones(3), torch.ones(3)], [torch.ones(3)]) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (X, X.clone(), False),
        (X, X * (1 + 1e-5), False),
        (X * 1e-6, X * 1.1e-6, True),
        (X, X.index_fill(0, torch.tensor([0]), 3.0), True),
        (X.long(), X.long().index_add(0, torch.tensor([0]), torch.ones(1, 16, dtype=torch.long)), True),
        (X > 0, X > 0.001 * X, False),
        (X > 0, X < 0, True),
        (torch.zeros(3), torch.tensor([0.0, 1e-30, 0.0]), True),
        (X.half(), (X * 1.5).half(), True),
        (torch.fft.fft(X), torch.fft.fft(X).conj(), True),
        (X, X * float("nan"), True),
        (X, X[:4], True),
    ],
)
def test_effect_is_relative_to_the_output(before, after, expected):
    assert has_effect([before], [after]) is expected


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(3),
        torch.tensor(1e-5),
        torch.full((4,), 600.0, dtype=torch.float16),
        torch.ones(3, dtype=torch.complex64),
        torch.tensor([True, True]),
        torch.arange(5),
        torch.tensor([0.0, float("-inf")]),
    ],
)
def test_a_disturbed_tensor_has_other_values_of_the_same_kind(tensor):
    changed = disturbed(tensor)
    assert (changed.shape, changed.dtype) == (tensor.shape, tensor.dtype)
    assert not torch.equal(changed, tensor)
    if tensor.dtype is torch.int64:
        assert sorted(changed.tolist()) == sorted(tensor.tolist())


@pytest.mark.parametrize(
    ("tree", "odd"),
    [
        (Pair(X, X.long()), ""),
        ({"a": [X, None], "b": X > 0}, ""),
        (torch.nn.Parameter(X), ""),
        (X.to(torch.complex64), ""),
        ([X, 3.0], "float"),
        ({"a": "text", "b": 1}, "int, str"),
        (None, "no tensor"),
        ((), "no tensor"),
        (X.relu().to_sparse(), "float32 tensor, torch.sparse_coo"),
        (X.to("meta"), "tensor on meta"),
        (X.to(torch.float8_e5m2), "float8_e5m2 tensor"),
        (X.long().to(torch.uint16), "uint16 tensor"),
        (torch.nested.nested_tensor([X[0], X[1, :3]]), "nested tensor"),
        (X.as_subclass(type("Mine", (torch.Tensor,), {})), "Mine"),
        (masked_tensor(X, X > 0), "MaskedTensor"),
    ],
)
def test_what_a_verifier_can_compare(subject, tree, odd):
    made = subject("class Model(nn.Module):\n    def forward(self, x):\n        return x.sin()")
    made.output = tree
    facts = output(made)
    assert facts["unsupported_output"] == odd
    assert ("output_elements" in facts) is (odd == "")


def test_facts_of_an_output(subject):
    made = subject(
        "class Model(nn.Module):\n    def forward(self, x):\n        return x.log(), None, x[:2, 0] > 0"
    )
    facts = output(made)
    assert facts["output_shapes"] == [[8, 16], [2]]
    assert facts["output_dtypes"] == ["float32", "bool"]
    assert facts["output_elements"] == 2
    assert facts["non_finite_values"] == int((made.inputs[0] < 0).sum())


def test_facts_about_inputs_and_parameters(subject):
    body = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.used = nn.Linear(16, 4)
            self.idle = nn.Linear(2, 2)

        def forward(self, x, pair, scale, unread):
            return self.used(x) * scale + pair[0]
    """
    inputs = "[torch.randn(8, 16), (torch.randn(8, 4), torch.randn(3)), 2.0, torch.ones(2)]"
    facts = degenerate(subject(body, inputs))
    assert facts["passing_answers"] == []
    assert facts["varies_along_batch"] is True
    assert facts["ignored_inputs"] == [1, 3]
    assert sorted(facts["inert_parameters"]) == ["idle.bias", "idle.weight"]
    assert facts["inert_parameter_share"] == pytest.approx(4 / (64 + 4 + 4 + 2))


@pytest.mark.parametrize(
    ("expression", "varies"),
    [
        ("x.mean(0).expand(2, 16).sin() * 9", False),
        ("(x[:, 0] > -0.3).long()", True),
        ("x.sum(-1)", True),
        ("x.t() * 2", None),
        ("x.sum()", None),
    ],
)
def test_the_output_must_vary_along_the_batch_in_some_draw(subject, expression, varies):
    body = f"class Model(nn.Module):\n    def forward(self, x):\n        return {expression}"
    made = subject(body, "[torch.randn(2, 16)]")
    assert degenerate(made)["varies_along_batch"] is varies


def test_parameters_are_put_back(subject):
    made = subject(
        """
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.mix = nn.Linear(16, 16)

            def forward(self, x):
                return self.mix(x)
        """
    )
    before = {name: p.clone() for name, p in made.model.named_parameters()}
    degenerate(made)
    assert all(torch.equal(p, before[name]) for name, p in made.model.named_parameters())


def test_coupled_inputs_are_not_blamed(subject):
    body = """
    class Model(nn.Module):
        def forward(self, values, offsets):
            if int(offsets[-1]) != len(values):
                raise ValueError("offsets belong to other values")
            return torch.segment_reduce(values, "sum", offsets=offsets)
    """
    inputs = (
        """(lambda n: [torch.randn(n, 4), torch.tensor([0, n // 2, n])])(int(torch.randint(9, 99, ())))"""
    )
    assert degenerate(subject(body, inputs))["ignored_inputs"] == []


@pytest.mark.parametrize(
    ("expression", "inputs", "forwards"),
    [
        ("x.sin()", "[torch.randn(8, 16)]", 2),
        ("x.sin() * y", "[torch.randn(8, 16), torch.randn(8, 16)]", 4),
        ("torch.tensor(1.0) + 0 * x.sum()", "[torch.randn(8, 16)]", 5),
    ],
)
def test_draws_end_once_every_answer_is_refuted(subject, monkeypatch, expression, inputs, forwards):
    arguments = "x, y" if "y" in expression else "x"
    made = subject(
        f"class Model(nn.Module):\n    def forward(self, {arguments}):\n        return {expression}", inputs
    )
    called = []
    monkeypatch.setattr(made.model, "forward", lambda *a, run=made.model.forward: called.append(a) or run(*a))
    facts = degenerate(made)
    assert len(called) == forwards + len(facts["ignored_inputs"])
