import json

import pytest

from composer.llm.settings import LlmSettings
from flows.llm_doctor import report


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def found(**settings):
    return {check.name: (check.ok, check.detail) for check in report(LlmSettings(**settings))}


def test_without_an_endpoint_nothing_is_tried():
    ok, detail = found()["LLM endpoint"]
    assert ok
    assert detail.startswith("none set")


@pytest.mark.parametrize(
    ("answer", "schema"),
    [({"content": json.dumps({"word": "loom"})}, "honoured"), ({"content": "Good morning!"}, "ignored"),
     ({"status": 400}, "refused")],
)  # fmt: skip
def test_what_an_endpoint_makes_of_a_schema_is_told(endpoint, answers, answer, schema):
    server = endpoint(
        lambda number, body: answers(**answer) if "response_format" in body else answers("Morning.")
    )
    checks = found(base_url=server.url, model="scripted")
    assert checks["LLM endpoint"] == (True, f"{server.url} replies as scripted")
    assert checks["JSON schema"][1].startswith(schema)


def test_a_model_that_is_not_listed_is_told(endpoint):
    server = endpoint()
    assert (
        "not among the 1 models that it lists" in found(base_url=server.url, model="other")["LLM endpoint"][1]
    )


def test_an_endpoint_that_is_not_there_fails():
    ok, detail = found(base_url="http://127.0.0.1:9/v1", model="m")["LLM endpoint"]
    assert not ok
    assert "no connection" in detail
