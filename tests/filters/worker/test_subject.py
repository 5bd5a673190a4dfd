import contextlib

import pytest
import torch

from filters.worker.building import build, run_as_users_do
from filters.worker.faults import CandidateFault

PASSING_ON = "class Model(nn.Module):\n    def forward(self, x):\n        return x.sin()"


def fault_of(act) -> CandidateFault:
    with pytest.raises(CandidateFault) as caught:
        act()
    return caught.value


@pytest.mark.parametrize(
    ("body", "inputs", "init", "fault", "detail"),
    [
        ("raise KeyError('x')", "[]", "[]", "init_failed", "import: KeyError: 'x'"),
        ("import sys\nsys.exit(0)", "[]", "[]", "crashed", "import: raised SystemExit"),
        ("Model = None", "[]", "[]", "contract", "Model is missing after the import"),
        ("class Model: ...", "[]", "[]", "contract", "Model is no torch.nn.Module"),
        (PASSING_ON, "[]", "1/0", "init_failed", "get_init_inputs: ZeroDivisionError: division by zero"),
        (PASSING_ON, "[]", "None", "contract", "get_init_inputs() returns NoneType, no list"),
        (PASSING_ON, "1/0", "[]", "inputs_failed", "get_inputs: ZeroDivisionError: division by zero"),
        (PASSING_ON, "{}", "[]", "contract", "get_inputs() returns dict, no list"),
        (PASSING_ON, "torch.ones(2)", "[]", "contract", "get_inputs() returns Tensor, no list"),
        (PASSING_ON, "[i for i in 'ab']", "[]", "forward_failed", None),
    ],
)
def test_faults(subject, body, inputs, init, fault, detail):
    found = fault_of(lambda: build(subject(body, inputs, init)))
    assert found.fault == fault
    assert detail is None or found.detail == detail


@pytest.mark.parametrize("raised", ["BaseException", "GeneratorExit", "KeyboardInterrupt", "SystemExit"])
def test_exceptions_that_pass_ordinary_handlers(subject, raised):
    body = f"class Model(nn.Module):\n    def forward(self, x):\n        raise {raised}"
    assert fault_of(lambda: subject(body)).fault == "crashed"


@pytest.mark.parametrize(
    "raised", ["MemoryError", "torch.OutOfMemoryError('x')", 'RuntimeError("can\'t allocate memory")']
)
def test_every_way_to_say_that_memory_ran_out(subject, raised):
    body = f"class Model(nn.Module):\n    def forward(self, x):\n        raise {raised}"
    assert fault_of(lambda: subject(body)).fault == "out_of_memory"


NEEDS_WIDTH = """
class Model(nn.Module):
    def __init__(self, width, options=None):
        super().__init__()
        self.mix = nn.Linear(width if isinstance(width, int) else width[0], 16)

    def forward(self, x):
        return self.mix(x)
"""


def test_the_dialect_of_kernelbook_is_named(subject):
    found = fault_of(lambda: subject(NEEDS_WIDTH, init="[[], {'width': 16}]"))
    assert found.fault == "contract"
    assert "returns [args, kwargs]" in found.detail


def test_a_list_and_a_dictionary_may_be_two_arguments(subject):
    assert subject(NEEDS_WIDTH, init="[[16], {'bias': True}]").output.shape == (8, 16)


def test_lazy_parameters_have_no_values(subject):
    body = """
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.LazyLinear(4)

        def forward(self, x):
            return self.mix(x)
    """
    found = fault_of(lambda: subject(body))
    assert found.fault == "init_failed"
    assert "lazy" in found.detail


def test_a_draw_is_known_by_its_number(subject):
    made = (
        subject(PASSING_ON, "[torch.randn(4), random.random()]", built=False)
        if False
        else subject(PASSING_ON)
    )
    assert torch.equal(made.draw(3)[0], made.draw(3)[0])
    assert not torch.equal(made.draw(3)[0], made.draw(4)[0])


def test_weights_do_not_depend_on_what_was_drawn_before(subject):
    made = subject(NEEDS_WIDTH, init="[16]")
    weight = made.model.mix.weight.clone()
    torch.rand(7)
    made.build()
    assert torch.equal(made.model.mix.weight, weight)


def test_weights_may_be_drawn_at_module_level(subject):
    body = """
    WEIGHTS = torch.randn(16, 4)

    class Model(nn.Module):
        def forward(self, x):
            return x @ WEIGHTS
    """
    first = subject(body).output
    torch.rand(7)
    assert torch.equal(subject(body).output, first)


def test_copies_have_strides_aliases_and_kinds_of_the_drawn_inputs(subject):
    inputs = """(lambda base: [
        base.t(), base[:, ::2], base[:1].expand(5, 16), torch.empty(2, 3, 4, 5, dtype=torch.bool).fill_(True)
            .to(memory_format=torch.channels_last),
        collections.namedtuple("Pair", "left right")(base, 2),
    ])(torch.randn(8, 16))"""
    made = subject(
        "class Model(nn.Module):\n    def forward(self, *a):\n        return a[-1].left.sin()", inputs
    )
    copies = made.fresh_inputs()
    for copied, drawn in zip(copies[:4], made.inputs[:4], strict=True):
        assert copied.stride() == drawn.stride()
        assert torch.equal(copied, drawn)
    copies[4].left[0, 0] = 7
    assert copies[0][0, 0] == 7
    assert copies[1][0, 0] == 7
    assert made.inputs[0][0, 0] != 7


def test_inputs_that_require_gradients(subject):
    made = subject(PASSING_ON, "[torch.randn(4, requires_grad=True) * 2]")
    assert made.fresh_inputs()[0].requires_grad
    assert made.fresh_inputs()[0].is_leaf


def test_the_first_forward_sees_inputs_as_they_were_drawn(subject):
    body = "class Model(nn.Module):\n    def forward(self, x):\n        return x.view(-1).sin()"
    made = subject(body, "[torch.randn(8, 16).t()]", built=False)
    assert fault_of(lambda: build(made)).fault == "forward_failed"


def test_facts_of_the_build(subject):
    facts = build(subject(NEEDS_WIDTH, "[torch.randn(8, 16)]", "[16]", built=False))
    assert facts["contract_fault"] == ""
    assert facts["inputs_fixed"] is False
    assert facts["input_shapes"] == [[8, 16]]
    assert facts["input_dtypes"] == ["float32"]
    assert facts["input_bytes"] == 512
    assert facts["n_params"] == 272
    assert facts["peak_memory_mb"] >= 0


def test_inputs_that_two_draws_have_in_common_by_chance_are_not_fixed(subject):
    facts = build(subject(PASSING_ON, "[torch.randint(0, 2, (1,))]", built=False))
    assert facts["inputs_fixed"] is False


def test_fixed_inputs_are_not_run(subject):
    made = subject(
        "class Model(nn.Module):\n    def forward(self, x):\n        raise SystemExit",
        "[torch.ones(4)]",
        built=False,
    )
    facts = build(made)
    assert facts["inputs_fixed"] is True
    assert "peak_memory_mb" not in facts


ON_ITS_OWN_DEVICE = """class Holder:
    def __init__(self, tensor):
        self.tensor = tensor


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(16))

    def forward(self, x):
        return self.scale * getattr(x, "tensor", x)"""


@pytest.fixture
def plain_draws(monkeypatch):
    """Nothing can be drawn on the device that stands for a GPU here."""
    monkeypatch.setattr("filters.worker.subject.DrawnOn", lambda device: contextlib.nullcontext())


def test_inputs_that_were_built_on_the_cpu_are_moved_and_run(subject, plain_draws):
    made = on_meta(subject(ON_ITS_OWN_DEVICE, "[torch.randn(16, 8).t()]", built=False))
    run_as_users_do(made)
    made.output = [made.output]
    assert "another structure" in fault_of(lambda: run_as_users_do(made)).detail


def test_plain_draws_need_not_be_moved_to_know_what_they_give(subject):
    made = on_meta(subject(ON_ITS_OWN_DEVICE, "[torch.rand(8, 16) + 0.5]", built=False))
    made.output = None
    run_as_users_do(made)


def test_inputs_that_cannot_be_moved_are_told(subject, plain_draws):
    made = on_meta(subject(ON_ITS_OWN_DEVICE, "[Holder(torch.randn(8, 16))]", built=False))
    fault = fault_of(lambda: run_as_users_do(made))
    assert fault.fault == "forward_failed"
    assert "cpu" in fault.detail


def on_meta(made):
    """Give the subject a device that is not the CPU."""
    made.device = torch.device("meta")
    made.build()
    made.output = made.forward(made.draw(0))
    return made
