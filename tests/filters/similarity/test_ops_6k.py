"""What two independent audits of the published 6,000 rows found (ops6k.md beside the project, section 3)."""

import json
from collections import Counter

import pytest

from composer.canonical import family_id
from filters.similarity import (
    SetMember,
    duplicates,
    fingerprint,
    labels_absent_from_code,
    shipped_reference,
    static_random_calls,
)
from filters.similarity.facts import operator_facts

RANDOM_ROWS = (521, 580, 1465, 1763, 2990, 3381, 4390, 4604)


def test_random_rows(ops_6k):
    assert static_random_calls(ops_6k[3381]["code"]) == ("torch.nn.functional.dropout",)
    assert all(static_random_calls(ops_6k[row]["code"]) for row in RANDOM_ROWS)
    assert not any(static_random_calls(row["code"]) for row in ops_6k[:100])


@pytest.mark.slow
def test_random_rows_are_these_alone(ops_6k):
    assert tuple(n for n, row in enumerate(ops_6k) if static_random_calls(row["code"])) == RANDOM_ROWS


@pytest.mark.slow
def test_labels_that_name_an_absent_operator(ops_6k):
    labelled = [row for row in ops_6k if row["data_source"] != "transformers"]
    wrong = sum(bool(labels_absent_from_code(row["code"], json.loads(row["ops"]))) for row in labelled)
    assert wrong == pytest.approx(550, rel=0.1)


@pytest.mark.slow
def test_repeats_and_signatures_of_kernelbench(ops_6k):
    codes = [row["code"] for row in ops_6k]
    assert len(codes) - len(set(codes)) == 352
    prints = [fingerprint(code) for code in codes]
    members = [
        SetMember(index=n, family_id=family_id(code), signature=p.signature, sequence=p.sequence)
        for n, (code, p) in enumerate(zip(codes, prints, strict=True))
    ]
    how = Counter(repeat.how for repeat in duplicates(members).values())
    assert how["canonical_form"] == pytest.approx(729, rel=0.1)
    assert how["signature"] < 200
    facts = list(operator_facts(prints, shipped_reference()))
    matches = sum(fact["kb_signature_match"] is not None for fact in facts)
    assert 100 <= matches <= 120  # 102 by their names; more once containers and conditions are followed
    assert sum(fact["kb_operator_similarity"] > 0.9 for fact in facts) == pytest.approx(184, rel=0.1)
