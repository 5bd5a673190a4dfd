import collections

import pytest
import torch

from filters.worker import trees

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

Pair = collections.namedtuple("Pair", "left right")


def test_leaves_in_order():
    tree = {"a": [1, (2, None)], "b": {"c": "x"}}
    assert trees.leaves(tree) == [1, 2, None, "x"]


def test_tensors_are_those_whose_bits_can_be_read():
    plain = torch.zeros(2)
    odd = [
        torch.zeros(2).to_sparse(),
        torch.zeros(2, device="meta"),
        torch.nested.nested_tensor([torch.zeros(1), torch.zeros(2)]),
        torch.quantize_per_tensor(torch.zeros(2), 0.1, 0, torch.qint8),
    ]
    assert trees.tensors([odd, plain, 3, None]) == [plain]
    assert trees.same_bits(odd, odd)
    assert trees.structure(odd[2]) == "Tensor"


def test_map_keeps_the_kinds_of_containers():
    ordered = collections.OrderedDict(x=torch.ones(1))
    tree = [Pair(torch.ones(1), 5), ordered, torch.sort(torch.ones(2))]
    doubled = trees.map_tensors(tree, lambda t: t * 2)
    assert type(doubled[0]) is Pair
    assert doubled[0].left == 2
    assert doubled[0].right == 5
    assert type(doubled[1]) is collections.OrderedDict
    assert doubled[1]["x"] == 2
    assert ordered["x"] == 1
    assert type(doubled[2]) is torch.return_types.sort


def test_structure_tells_dtype_shape_and_nesting():
    tree = (torch.zeros(2, 3), {"k": torch.tensor(1)}, None)
    assert trees.structure(tree) == "[float32[2, 3], {'k': int64[]}, NoneType]"


def test_named_tuples_lists_and_tuples_are_one_kind():
    values, indices = torch.rand(3), torch.arange(3)
    assert trees.structure(Pair(values, indices)) == trees.structure([values, indices])
    assert trees.same_bits(torch.sort(values), tuple(torch.sort(values)))


NAN = torch.tensor([float("nan"), 1.0])
COMPLEX = torch.randn(4, 3, dtype=torch.complex64)


@pytest.mark.parametrize(
    "tensor",
    [
        NAN,
        torch.tensor(3.0),
        torch.empty(0, 4),
        torch.randn(3, dtype=torch.bfloat16),
        torch.tensor([True, False]),
        torch.tensor([255], dtype=torch.uint8),
        torch.randn(2, 2, dtype=torch.complex128),
        torch.randn(3).to(torch.float8_e4m3fn),
        torch.randn(4, 6).t(),
        torch.randn(1, 6).expand(4, 6),
        COMPLEX.conj(),
        COMPLEX.conj().imag,
        torch.randn(3, requires_grad=True),
    ],
    ids=lambda t: trees.structure(t),
)
def test_a_tensor_has_the_bits_and_the_digest_of_its_dense_copy(tensor):
    dense = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    assert trees.same_bits(tensor, dense)
    assert trees.digest(tensor) == trees.digest(dense)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (torch.tensor(0.0), torch.tensor(-0.0)),
        (NAN, torch.tensor([float("nan"), 1.0000001])),
        (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
        (torch.zeros(2), torch.zeros(2, 1)),
        (torch.zeros(0, 2), torch.zeros(0, 3)),
        (COMPLEX, COMPLEX.conj()),
        (torch.tensor([1, 2]), torch.tensor([2, 1])),
        ([torch.zeros(1), None], [torch.zeros(1), 3]),
        ([torch.zeros(1)], [torch.zeros(1), torch.zeros(1)]),
        ({"a": torch.zeros(1)}, {"b": torch.zeros(1)}),
    ],
)
def test_different_bits_and_digests(left, right):
    assert not trees.same_bits(left, right)
    assert trees.digest(left) != trees.digest(right) or trees.leaves(right)[-1] == 3


def test_no_flip_of_signs_goes_unnoticed():
    values = torch.randn(12)
    digests = {trees.digest(values * (1 - 2 * torch.randint(0, 2, (12,)))) for _ in range(2000)}
    different = 4096 * (1 - (1 - 1 / 4096) ** 2000)
    assert len(digests) == pytest.approx(different, rel=0.05)


def test_leaves_that_are_no_tensors_are_compared_by_value():
    assert trees.same_bits([1.5, "a", float("nan")], [1.5, "a", float("nan")])
    assert not trees.same_bits([1.5], [2.5])
    assert not trees.same_bits([1], [True])


def test_the_digest_depends_on_the_position_of_every_element():
    tensor = torch.arange(1000)
    assert trees.digest(tensor) != trees.digest(tensor.flip(0))
    assert trees.digest(tensor) != trees.digest(tensor.reshape(10, 100))


def test_the_digest_of_parts_tells_where_they_end(monkeypatch):
    tensor = torch.randn(1000)
    monkeypatch.setattr(trees, "_CHUNK", 64)
    in_parts = trees.digest(tensor)
    changed = tensor.clone()
    changed[[3, 67]] = changed[[67, 3]]
    assert trees.digest(changed) != in_parts
    assert trees.digest(tensor.clone()) == in_parts


@pytest.mark.parametrize("shape", [(7,), (3, 50), (50, 3), (2, 3, 40), (), (0, 4)])
def test_pieces_are_small_and_make_up_the_whole(shape, monkeypatch):
    monkeypatch.setattr(trees, "_CHUNK", 20)
    one = torch.randn(shape)
    other = torch.zeros(()).expand(shape)
    parts = list(trees.pieces(one, other))
    assert all(part.numel() <= max(20, 2 * 3) and rest.shape == part.shape for part, rest in parts)
    assert sum(float(part.double().sum()) for part, _ in parts) == pytest.approx(float(one.double().sum()))
    assert sum(part.numel() for part, _ in parts) == one.numel()


def test_shared_and_expanded_storage_counts_once():
    base = torch.zeros(1000)
    assert trees.stored_bytes([base, {"half": base[:500]}, torch.ones(1).expand(50), None]) == 4004
