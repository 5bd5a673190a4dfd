"""An interrupted build goes on where it stopped."""

import json

import pytest

from ops_crawler.lifting import lanes
from ops_crawler.lifting.kept import Kept
from ops_crawler.lifting.lift import Refusal, lift_classes

BERT = "transformers.models.bert.modeling_bert"
RESULT = {"name": "BertPooler", "reason": "mismatch", "detail": "kept"}


@pytest.fixture
def kept(tmp_path) -> Kept:
    return Kept(tmp_path / "kept")


def test_a_module_that_is_kept_is_not_lifted_again(kept, monkeypatch):
    monkeypatch.setattr(lanes, "_started", lambda side: pytest.fail(f"started {side}"))
    kept.put(BERT, ["BertPooler"], [RESULT])
    assert lift_classes({BERT: ["BertPooler"]}, kept=kept) == {
        (BERT, "BertPooler"): Refusal(reason="mismatch", detail="kept")
    }


def test_other_classes_or_another_package_text_are_not_known(kept):
    assert kept.get(BERT, ["BertPooler"]) is None
    kept.put(BERT, ["BertPooler"], [RESULT])
    assert kept.get(BERT, ["BertPooler"]) == [RESULT]
    assert kept.get(BERT, ["BertPooler", "BertLayer"]) is None
    file = kept.folder / f"{BERT}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"key": "of an earlier text"}))
    assert kept.get(BERT, ["BertPooler"]) is None


def test_what_a_time_limit_cut_short_is_tried_again(kept):
    kept.put(BERT, ["BertPooler"], [RESULT | {"reason": "time_limit"}])
    assert kept.get(BERT, ["BertPooler"]) is None


@pytest.mark.slow
def test_what_is_lifted_is_kept(kept):
    first = lift_classes({BERT: ["BertPooler"]}, kept=kept)
    assert lift_classes({BERT: ["BertPooler"]}, kept=kept) == first
    assert [one["name"] for one in kept.get(BERT, ["BertPooler"])] == ["BertPooler"]
