import pytest
import torch

from filters.worker.scatter import ScatterTargets

X = torch.randn(4, 6)
TWICE = torch.tensor([0, 2, 2, 5])
ONCE = torch.tensor([5, 2, 0, 1])


def repeated(call) -> str | None:
    with ScatterTargets() as scatter:
        call()
    return scatter.repeated


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: torch.zeros(4, 6).scatter(1, TWICE.expand(4, 4), X), "scatter.src"),
        (lambda: torch.zeros(4, 6).scatter_(1, TWICE.expand(4, 4), X), "scatter_.src"),
        (lambda: torch.zeros(4, 6).index_copy(1, TWICE, X[:, :4]), "index_copy"),
        (lambda: torch.index_put(torch.zeros(6), [TWICE], X[0, :4]), "index_put"),
        (lambda: torch.zeros(6).put_(TWICE, X[0, :4]), "put_"),
        (lambda: torch.zeros(6).__setitem__(TWICE, X[0, :4]), "index_put_"),
        (lambda: torch.zeros(6).__setitem__(torch.tensor([5, -1]), X[0, :2]), "index_put_"),
        (lambda: torch.zeros(3, 6).__setitem__((slice(None), TWICE), X[:3, :4]), "index_put_"),
        (
            lambda: torch.zeros(3, 6).__setitem__(
                (torch.tensor([0, 1, 0]), torch.tensor([4, 4, 4])), X[0, :3]
            ),
            "index_put_",
        ),
    ],
)
def test_repeated_targets(call, name):
    assert repeated(call) == name


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.zeros(4, 6).scatter(1, ONCE.expand(4, 4), X),
        lambda: torch.zeros(4, 6).scatter(0, TWICE[:1].expand(1, 6), X),
        lambda: torch.zeros(4, 6).scatter(1, TWICE.expand(4, 4), 1.0),
        lambda: torch.zeros(4, 6).scatter_add(1, TWICE.expand(4, 4), X),
        lambda: torch.zeros(4, 6).index_add(1, TWICE, X[:, :4]),
        lambda: torch.zeros(4, 6).index_copy(1, ONCE, X[:, :4]),
        lambda: torch.index_put(torch.zeros(6), [TWICE], X[0, :4], accumulate=True),
        lambda: torch.zeros(6).__setitem__(TWICE, 0.5),
        lambda: torch.zeros(6).__setitem__(ONCE, X[0, :4]),
        lambda: torch.zeros(4, 6).__setitem__(X > 0, X[X > 0]),
        lambda: torch.zeros(3, 6).__setitem__((torch.tensor([0, 1, 2]), torch.tensor([4])), X[0, :3]),
        lambda: torch.zeros(()).scatter(0, torch.tensor(0), torch.tensor(2.0)),
    ],
)
def test_targets_that_are_written_once_or_by_a_defined_rule(call):
    assert repeated(call) is None
