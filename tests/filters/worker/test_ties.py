import pytest
import torch

from filters.worker.ties import TieOrder, undefined_order

EQUAL = torch.tensor([[2.0, 1.0, 2.0, 1.0, 0.0, 2.0], [0.0, 0.0, 0.0, 3.0, 3.0, 1.0]])
DISTINCT = torch.tensor([[5.0, 1.0, 2.0, 0.0], [3.0, 9.0, 4.0, 7.0]])


def undefined(call) -> str | None:
    with TieOrder(reverse=False) as ties:
        one = call()
    with TieOrder(reverse=True):
        other = call()
    return undefined_order(one, other, ties.called)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: torch.sort(EQUAL), "sort"),
        (lambda: torch.argsort(EQUAL.t(), 0, descending=True), "sort"),
        (lambda: torch.topk(EQUAL, 2)[1], "topk"),
        (lambda: torch.topk(EQUAL, 2, dim=-1, largest=False)[1].float().sin(), "topk"),
        (lambda: torch.topk(DISTINCT, 3, sorted=False), "topk"),
        (lambda: torch.kthvalue(EQUAL, 3)[1], "kthvalue"),
        (lambda: torch.arange(6.0)[torch.topk(EQUAL, 2)[1]], "topk"),
    ],
)
def test_the_order_of_equal_elements_decides(call, name):
    assert undefined(call) == f"{name}, whose order is left open"


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.sort(DISTINCT),
        lambda: torch.topk(DISTINCT, 2, 0),
        lambda: torch.kthvalue(DISTINCT, 2),
        lambda: torch.topk(DISTINCT, 3, sorted=False)[0].amax(-1),
        lambda: torch.sort(EQUAL)[0],
        lambda: torch.sort(EQUAL, stable=True),
        lambda: torch.topk(EQUAL, 3)[0],
        lambda: torch.gather(EQUAL, 1, torch.topk(EQUAL, 3)[1]),
        lambda: EQUAL.argmax(-1),
        lambda: torch.max(EQUAL, -1),
        lambda: torch.sort(torch.tensor(3.0)),
        lambda: torch.sort(torch.zeros(2, 0)),
        lambda: EQUAL.sin(),
    ],
)
def test_the_order_of_equal_elements_does_not_matter(call):
    assert undefined(call) is None


def test_a_few_equal_elements_among_many_are_forgiven():
    many = torch.randperm(5000).float()
    many[17] = many[42]
    assert undefined(lambda: torch.sort(many)) is None


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.sort(DISTINCT, 0, True),
        lambda: torch.topk(DISTINCT, 2),
        lambda: torch.topk(DISTINCT, 1, 0, largest=False),
        lambda: torch.kthvalue(DISTINCT, 2, 0),
        lambda: torch.kthvalue(DISTINCT, 2, keepdim=True),
        lambda: torch.kthvalue(DISTINCT[0], 3),
    ],
)
def test_both_orders_give_right_answers(call, reverse):
    right = call()
    with TieOrder(reverse=reverse):
        answer = call()
    assert type(answer) is type(right)
    assert torch.equal(answer.values, right.values)
    assert torch.equal(answer.indices, right.indices)
