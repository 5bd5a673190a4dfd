import collections

import pytest
import torch

from filters.worker.compiling import compare, compile_model, lowest_precision
from filters.worker.device_memory import Memory
from filters.worker.faults import CandidateFault

Pair = collections.namedtuple("Pair", "left right")
MIX = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(16, 16)

    def forward(self, x):
        return self.mix(x).sigmoid()
"""


def passing_on(expression: str) -> str:
    return f"class Model(nn.Module):\n    def forward(self, x):\n        return {expression}"


def is_mismatch(facts: dict) -> bool:
    if facts["compared_with"] == "allclose":
        return not facts["compiled_allclose"]
    return facts["compiled_error"] > facts["allowed_error"]


def test_double_precision_arbitrates(subject):
    made = subject(MIX)
    facts = compare(made, made.output + 1e-7)
    assert facts["structure_fault"] == ""
    assert facts["compared_with"] == "fp64"
    assert 0 < facts["eager_error"] < 1e-6
    assert facts["allowed_error"] == pytest.approx(2 * facts["eager_error"] + 1e-5)
    assert "compiled_allclose" not in facts
    assert not is_mismatch(facts)


def test_a_compiled_output_that_rounding_does_not_explain(subject):
    made = subject(MIX)
    facts = compare(made, made.output * 1.001)
    assert is_mismatch(facts)
    assert facts["compiled_error"] == pytest.approx(1e-3, rel=1e-2)


def test_the_model_and_the_inputs_stay_in_their_precision(subject):
    made = subject(MIX)
    compare(made, made.output)
    assert made.model.mix.weight.dtype is torch.float32
    assert made.inputs[0].dtype is torch.float32


@pytest.mark.parametrize(("dtype", "factor", "floor"), [("bfloat16", 3, 8e-3), ("float16", 3, 1e-3)])
def test_half_types_may_be_coarser(subject, dtype, factor, floor):
    made = subject(
        MIX.replace("nn.Linear(16, 16)", f"nn.Linear(16, 16).to(torch.{dtype})"),
        f"[torch.randn(8, 16).to(torch.{dtype})]",
    )
    facts = compare(made, made.output)
    assert facts["compared_with"] == "fp64"
    assert facts["allowed_error"] == pytest.approx(factor * facts["eager_error"] + floor)


def test_precision_inside_the_task_counts(subject):
    made = subject(passing_on("(x.bfloat16() * 3).float()"))
    assert lowest_precision(made, [made.output]) is torch.float32
    made.dtypes = {torch.float32, torch.bfloat16}
    assert lowest_precision(made, [made.output]) is torch.bfloat16


@pytest.mark.parametrize(
    ("inputs", "dtype"),
    [
        ("[torch.randn(4, dtype=torch.float64)]", torch.float64),
        ("[torch.randn(4)]", torch.float32),
        ("[torch.randn(4, dtype=torch.complex64)]", torch.float32),
        ("[torch.randn(4, dtype=torch.complex128)]", torch.float64),
        ("[torch.randn(4).half()]", torch.float16),
        ("[torch.randint(0, 9, (4,))]", torch.float64),
    ],
)
def test_lowest_precision_of_the_inputs(subject, inputs, dtype):
    made = subject(passing_on("x * 2"), inputs)
    assert lowest_precision(made, [made.output]) is dtype


def test_without_double_precision_allclose_decides(subject):
    made = subject(passing_on("torch.frombuffer(x.numpy().tobytes(), dtype=torch.float32).sin()"))
    facts = compare(made, made.output + 1e-6)
    assert facts["compared_with"] == "allclose"
    assert facts["compiled_allclose"] is True
    assert "eager_error" not in facts
    assert is_mismatch(compare(made, made.output * 1.01))


def test_allclose_is_relative_to_the_size_of_the_output(subject):
    frombuffer = "torch.frombuffer(x.numpy().tobytes(), dtype=torch.float32)"
    made = subject(passing_on(f"{frombuffer} * 1e5"))
    rounding = 1e-6 * made.output.abs().max()
    assert not is_mismatch(compare(made, made.output + rounding))
    small = subject(passing_on(f"{frombuffer} * 1e-6"))
    assert is_mismatch(compare(small, small.output * 1.1))


@pytest.mark.parametrize(
    "expression",
    [
        "torch.mm(x.float(), torch.ones(16, 4, dtype=torch.float32))",
        "torch.zeros(8, 16, dtype=torch.float32) + x.to(torch.float32)",
        "torch.softmax(x, -1, dtype=torch.float32)",
        "torch.mm(x, torch.ones(16, 4)) + torch.arange(4.0)",
        "torch.mm(x, self.table)",
    ],
)
def test_dtypes_that_a_task_insists_on_are_widened(subject, expression):
    body = passing_on(expression).replace("    def", "    table = torch.ones(16, 4)\n\n    def", 1)
    made = subject(body)
    made.model.table = made.model.table
    facts = compare(made, made.output)
    assert facts["compared_with"] == "fp64"
    assert facts["eager_error"] < 1e-5


def test_half_precision_inside_is_held_against_double_precision(subject):
    made = subject(passing_on("(x.bfloat16() * 3).tanh().float()"), "[torch.randn(64, 64)]")
    made.dtypes = {torch.float32, torch.bfloat16}
    facts = compare(made, (made.inputs[0] * 3).tanh())
    assert 1e-3 < facts["eager_error"] < 1e-2
    assert facts["compiled_error"] < facts["eager_error"]
    assert not is_mismatch(facts)


def test_the_default_dtype_is_put_back(subject):
    made = subject(passing_on("x.sin()"))
    compare(made, made.output)
    assert torch.get_default_dtype() is torch.float32


def test_eager_far_from_double_precision(subject):
    made = subject(passing_on("(x + 1e8) - 1e8"))
    facts = compare(made, made.output)
    assert facts["eager_error"] > 1e-2


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("x.argmax(-1)", lambda y: y.index_fill(0, torch.tensor([3]), 1)),
        ("x > 0", lambda y: ~y),
        ("(x * 100).to(torch.uint8)", lambda y: y + 1),
    ],
)
def test_integers_and_truth_values_must_be_equal(subject, expression, wrong):
    made = subject(passing_on(expression), "[torch.rand(8, 16)]")
    assert not is_mismatch(compare(made, made.output.clone()))
    assert is_mismatch(compare(made, wrong(made.output)))


def test_complex_outputs(subject):
    made = subject(passing_on("torch.fft.fft(x)"))
    facts = compare(made, made.output.clone())
    assert facts["compared_with"] == "fp64"
    assert not is_mismatch(facts)
    assert is_mismatch(compare(made, made.output.conj().resolve_conj()))


def test_complex_parameters(subject):
    body = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.filter = nn.Parameter(torch.randn(16, 4, dtype=torch.complex64))

        def forward(self, x):
            return torch.fft.fft(x) @ self.filter
    """
    made = subject(body)
    assert compare(made, made.output)["compared_with"] == "fp64"


@pytest.mark.parametrize(
    ("expression", "compiled"),
    [
        ("(x, None)", lambda y: [y[0]]),
        ("x.sin()", lambda y: y.double()),
        ("x.sin()", lambda y: y[:4]),
        ("{'a': x.sin()}", lambda y: {"b": y["a"]}),
        ("(x.sin(), None)", lambda y: (y[0], y[0])),
    ],
)
def test_other_structures(subject, expression, compiled):
    made = subject(passing_on(expression))
    assert compare(made, compiled(made.output))["structure_fault"].startswith("eager ")


def test_kinds_of_tuples_are_no_difference(subject):
    made = subject(passing_on("torch.sort(x, -1)"))
    for compiled in (tuple(made.output), list(made.output), Pair(*made.output)):
        assert compare(made, compiled)["structure_fault"] == ""


def test_none_is_skipped(subject):
    made = subject(passing_on("(x.sin(), None, x.cos())"))
    assert not is_mismatch(compare(made, (made.output[0], None, made.output[2])))


def test_the_worst_leaf_decides(subject):
    made = subject(passing_on("(x.sin(), x.cos())"))
    assert is_mismatch(compare(made, (made.output[0], made.output[1] * 1.01)))
    assert is_mismatch(compare(made, (made.output[0] * 1.01, made.output[1])))


def test_graphs_and_breaks_are_counted(subject):
    facts, compiled, output = compile_model(subject(MIX))
    assert (facts["graphs"], facts["graph_breaks"]) == (1, 0)
    assert facts["compile_seconds"] > 0
    assert output.shape == compiled(torch.randn(8, 16)).shape == (8, 16)
    body = """
    class Model(nn.Module):
        def forward(self, x):
            y = x.sin()
            print(float(y.sum()))
            return y.cos()
    """
    facts, _, _ = compile_model(subject(body))
    assert facts["graphs"] >= 1
    assert facts["graph_breaks"] >= 1


def test_the_device_is_left_while_compiling_and_not_when_it_is_compiled_again(subject):
    class Noting(Memory):
        def __init__(self):
            self.events = []

        def leave_device(self):
            self.events.append("left")

        def ask(self, counted):
            assert counted() > 0
            self.events.append("asked")

    made = subject(MIX)
    made.memory = Noting()
    _, compiled, _ = compile_model(made)
    assert made.memory.events == ["left", "asked"]
    compiled(torch.randn(3, 16).double().float().requires_grad_())
    assert made.memory.events == ["left", "asked"]


@pytest.mark.parametrize("error", [ValueError("no lowering"), SystemExit(0), BaseException()])
def test_whatever_a_compiler_raises(subject, error):
    def failing(graph, example_inputs):
        raise error

    made = subject(MIX)
    made.job["compile_backend"] = failing
    with pytest.raises(CandidateFault) as caught:
        compile_model(made)
    assert caught.value.fault == "compile_failed"


def test_a_model_that_cannot_be_copied_is_compared_by_allclose(subject):
    made = subject(MIX)
    made.model.numbers = (n for n in range(3))
    assert compare(made, made.output)["compared_with"] == "allclose"
