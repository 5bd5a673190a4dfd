"""Drawing on another device what is asked of the CPU: same kinds of tensors, on the CPU."""

import pytest
import torch

from filters.worker.quick_draws import DrawnOn, OnlyDraws

DRAWS = {
    "normals": lambda: torch.randn(3, 4),
    "a dtype": lambda: torch.rand(3, dtype=torch.float64),
    "integers": lambda: torch.randint(2, 9, (5,)),
    "like another": lambda: torch.randn_like(torch.ones(2, 2, dtype=torch.float16)),
    "in place": lambda: torch.empty(4).uniform_(2, 3),
    "a part, in place": lambda: torch.zeros(4, 4)[:, :2].normal_(),
    "with gradients": lambda: torch.randn(3, requires_grad=True),
    "from a generator": lambda: torch.randn(3, generator=torch.Generator().manual_seed(1)),
}


@pytest.mark.parametrize("case", DRAWS)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_what_is_drawn_looks_as_if_the_cpu_had(case, device):
    plain = DRAWS[case]()
    with DrawnOn(torch.device(device)):
        drawn = DRAWS[case]()
    assert (drawn.shape, drawn.dtype, drawn.device) == (plain.shape, plain.dtype, plain.device)
    for kind in ("requires_grad", "is_leaf"):
        assert getattr(drawn, kind) == getattr(plain, kind)
    assert drawn.stride() == plain.stride()
    if case in ("integers", "in place"):
        assert bool(((drawn >= 2) & (drawn < 9)).all())
    assert len(drawn.unique()) > 1


def test_drawing_happens_on_the_other_device():
    class Elsewhere(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((func, (kwargs or {}).get("device")))
            return func(*args, **(kwargs or {}))

    seen: list = []
    other = torch.device("cpu")
    with Elsewhere(), DrawnOn(other):
        torch.randn(3)
    assert seen == [(torch.randn, other), (torch.Tensor.cpu, None)]


@pytest.mark.parametrize(
    ("draw", "alike"),
    [
        (lambda: torch.randn(3, 4, dtype=torch.bfloat16), True),
        (lambda: torch.rand(3) * 2 - 0.5, True),
        (lambda: torch.sign(torch.randn(3)), True),
        (lambda: (torch.randint(0, 9, (5,)), torch.randperm(4), torch.rand(3) < 0.6), True),
        (lambda: torch.randn(3, device="cpu"), False),
        (lambda: torch.randn(3, generator=torch.Generator()), False),
        (lambda: torch.empty(3).exponential_(), False),
        (lambda: torch.randn(4, 3).t(), False),
    ],
)
def test_what_can_differ_between_devices_is_noted(draw, alike):
    draws = OnlyDraws()
    with torch.device("cpu"), draws:
        draw()
    assert draws.alike is alike
