import random

from composer.canonical import family_id
from filters.similarity import Repeat, SetMember, duplicates, fingerprint


def member(index: int, family: str, signature: str, sequence: list[int]) -> SetMember:
    return SetMember(index=index, family_id=family, signature=tuple(signature.split()), sequence=sequence)


LONG = list(range(100))


def test_the_lowest_index_stays_in_any_order():
    members = [
        member(4, "a", "relu", LONG),
        member(1, "a", "relu", LONG),
        member(7, "b", "relu", LONG[:50]),
        member(9, "a", "relu", LONG),
    ]
    for seed in range(5):
        random.Random(seed).shuffle(members)
        assert {index: repeat.of for index, repeat in duplicates(members).items()} == {4: 1, 9: 1}


def test_equal_signature_with_near_equal_structure():
    members = [
        member(0, "a", "linear relu", LONG),
        member(1, "b", "linear relu", [*LONG[:-1], 999]),
        member(2, "c", "linear gelu", LONG),
        member(3, "d", "linear relu", LONG[:80]),
    ]
    assert duplicates(members) == {1: Repeat(of=0, how="signature", score=0.99)}


def test_a_repeat_points_to_a_task_that_stays():
    members = [
        member(0, "a", "relu", LONG),
        member(1, "b", "relu", [*LONG[:-1], 999]),
        member(2, "b", "relu", [*LONG[:-1], 999]),
    ]
    repeats = duplicates(members)
    assert repeats[1].of == repeats[2].of == 0


def test_without_a_signature_only_the_form_counts():
    members = [member(0, "a", "", LONG), member(1, "b", "", LONG), member(2, "b", "", [])]
    assert duplicates(members) == {2: Repeat(of=1, how="canonical_form")}


def test_the_pair_among_the_cases(cases):
    pair = [cases["dp_constants_a"], cases["dp_constants_b"]]
    for first, second in (pair, pair[::-1]):
        members = []
        for index, code in enumerate((first, second)):
            print_of = fingerprint(code)
            members.append(
                SetMember(
                    index=index,
                    family_id=family_id(code),
                    signature=print_of.signature,
                    sequence=print_of.sequence,
                )
            )
        assert duplicates(members)[1].of == 0
