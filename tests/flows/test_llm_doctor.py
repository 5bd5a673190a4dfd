import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from composer.llm.settings import LlmSettings
from flows.llm_doctor import report


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def page_server():
    """Answers every request with a web page."""

    class Handler(BaseHTTPRequestHandler):
        def page(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<html>Welcome</html>")

        do_GET = do_POST = page  # noqa: N815

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}/v1"
        http.shutdown()


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


def test_a_model_is_asked_with_the_fields_of_the_settings(endpoint):
    server = endpoint()
    extra = {"max_completion_tokens": 900}
    found(base_url=server.url, model="scripted", max_tokens=0, send_seed=False, extra=extra)
    assert {"max_tokens", "seed"}.isdisjoint(server.bodies[0])
    assert server.bodies[0]["max_completion_tokens"] == 900


def test_a_server_of_web_pages_fails(page_server):
    ok, detail = found(base_url=page_server, model="m")["LLM endpoint"]
    assert not ok
    assert "an answer that is no chat completion" in detail
    ok, detail = found(base_url=page_server)["LLM endpoint"]
    assert (ok, detail) == (False, f"{page_server} lists no model; set llm.model")


def test_an_endpoint_that_is_not_there_fails():
    ok, detail = found(base_url="http://127.0.0.1:9/v1", model="m")["LLM endpoint"]
    assert not ok
    assert "no connection" in detail
