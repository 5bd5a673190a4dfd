"""The Batch API over real HTTP: sending, waiting, going on after a kill, replies to a part of a batch."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from composer.llm.batch import BatchClient, NotYetError
from composer.llm.client import openai_client
from composer.llm.costs import Meter
from composer.llm.errors import CostLimitError, EndpointError, EndpointSettingsError, RequestRefusedError
from composer.llm.requests import Request
from composer.llm.settings import LlmSettings, Price

REPLY = {
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
    "usage": {"prompt_tokens": 100, "completion_tokens": 200},
}


class BatchServer:
    """Keeps files and batches; `answer(batch number, place)` gives the status of each request."""

    def __init__(self):
        self.files, self.batches = {}, []
        self.answer = lambda batch, place: 200
        self.ends_as = "completed"
        self.polls_until_ended = 2
        self.faults_at_polls = 0

    def post(self, path, content):
        if path == "/v1/files":
            id = f"file-{len(self.files)}"
            self.files[id] = [
                json.loads(line) for line in content.splitlines() if line.startswith(b'{"custom_id"')
            ]
            return {"id": id, "object": "file", "bytes": 1, "created_at": 0, "filename": "f",
                    "purpose": "batch", "status": "processed"}  # fmt: skip
        wanted = json.loads(content)
        self.batches.append(
            {"id": f"batch-{len(self.batches)}", "object": "batch", "status": "in_progress", "polls": 0,
             "created_at": 0, "completion_window": "24h", "endpoint": wanted["endpoint"],
             "input_file_id": wanted["input_file_id"], "metadata": wanted["metadata"]}
        )  # fmt: skip
        return self.batches[-1]

    def get(self, path):
        if path.startswith("/v1/batches?"):
            return {"object": "list", "data": self.batches[::-1], "has_more": False}
        if path.startswith("/v1/batches/"):
            number = int(path.rpartition("-")[2])
            self._polled(number)
            return self.batches[number]
        return self.files[path.split("/")[3]]

    def _polled(self, number):
        batch = self.batches[number]
        batch["polls"] += 1
        if batch["polls"] < self.polls_until_ended:
            return
        batch["status"] = self.ends_as
        if self.ends_as == "failed":
            batch["errors"] = {"object": "list", "data": [{"code": "x", "message": "no such model"}]}
            return
        good, bad = [], []
        for place, asked in enumerate(self.files[batch["input_file_id"]]):
            status = self.answer(number, place)
            body = REPLY if status == 200 else {"error": {"message": f"status {status}"}}
            line = {
                "custom_id": asked["custom_id"],
                "response": {"status_code": status, "body": body},
                "error": None,
            }
            if status:
                (good if status == 200 else bad).append(json.dumps(line))
        for name, lines in (("output_file_id", good[::-1]), ("error_file_id", bad)):
            batch[name] = f"file-{name}-{number}"
            self.files[batch[name]] = "\n".join(lines).encode()


@pytest.fixture
def server():
    kept = BatchServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send(kept.post(self.path, self.rfile.read(int(self.headers["content-length"]))))

        def do_GET(self):
            if kept.faults_at_polls and self.path.startswith("/v1/batches/"):
                kept.faults_at_polls -= 1
                self.send_error(503)
                return
            self.send(kept.get(self.path))

        def send(self, answer):
            body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    kept.url = f"http://127.0.0.1:{http.server_port}/v1"
    yield kept
    http.shutdown()
    http.server_close()


class Memory(dict):
    def reply(self, request):
        return self.get((request.hash, request.draw))

    def keep_reply(self, request, reply, base_url):
        self.setdefault((request.hash, request.draw), reply)


REQUESTS = [Request.of({"model": "m", "messages": [{"role": "user", "content": str(n)}]}) for n in range(6)]


def ask(server, cache, meter=None, seconds=30.0, requests=REQUESTS):
    """Ask for the requests; return what was said of those that failed."""

    async def run():
        async with openai_client(LlmSettings(base_url=server.url)) as opened:
            client = BatchClient(opened, cache, meter or Meter(), poll_seconds=0.05)
            for request in requests:
                try:
                    await client.reply(request)
                except NotYetError:
                    continue
            async with asyncio.timeout(seconds):
                return await client.ask()

    return asyncio.run(run())


def test_replies_in_any_order_find_their_requests(server):
    cache, meter = Memory(), Meter(Price(input=1, output=1))
    assert ask(server, cache, meter) == []
    assert [json.loads(cache.reply(request)) for request in REQUESTS] == [REPLY] * 6
    (batch,) = server.batches
    assert [line["body"] for line in server.files[batch["input_file_id"]]] == [r.body for r in REQUESTS]
    assert meter.cost == pytest.approx(6 * 300e-6)
    assert ask(server, cache) == []
    assert len(server.batches) == 1


def test_killed_while_waiting_it_waits_for_the_same_batch(server):
    cache = Memory()
    server.polls_until_ended = 10**6
    with pytest.raises(TimeoutError):
        ask(server, cache, seconds=0.3)
    server.polls_until_ended = 1
    assert ask(server, cache) == []
    assert (len(server.batches), len(cache)) == (1, 6)


@pytest.mark.parametrize(("status", "ends_as"), [(429, "completed"), (0, "expired"), (500, "cancelled")])
def test_what_a_batch_left_unanswered_goes_into_another(server, status, ends_as):
    server.answer = lambda batch, place: status if batch == 0 and place % 2 else 200
    server.ends_as = ends_as
    cache = Memory()
    assert ask(server, cache) == []
    assert len(cache) == 6
    assert [len(server.files[batch["input_file_id"]]) for batch in server.batches] == [6, 3]


def test_what_is_never_answered_is_told_and_asked_for_again_by_the_next_start(server):
    server.answer = lambda batch, place: 500 if place == 0 else 200
    cache = Memory()
    assert ask(server, cache) == ["status 500"]
    assert len(cache) == 5
    server.answer = lambda batch, place: 200
    assert ask(server, cache) == []
    assert [len(server.files[batch["input_file_id"]]) for batch in server.batches] == [6, 1, 1]


def test_a_refused_request_is_not_sent_again(server):
    server.answer = lambda batch, place: 400 if place == 2 else 200
    cache = Memory()

    async def run():
        async with openai_client(LlmSettings(base_url=server.url)) as opened:
            client = BatchClient(opened, cache, Meter(), poll_seconds=0.05)
            for request in REQUESTS:
                with pytest.raises(NotYetError):
                    await client.reply(request)
            assert await client.ask() == []
            with pytest.raises(RequestRefusedError, match="status 400"):
                await client.reply(REQUESTS[2])

    asyncio.run(run())
    assert (len(server.batches), len(cache)) == (1, 5)


def test_where_all_is_refused_the_settings_are_wrong(server):
    server.answer = lambda batch, place: 400
    with pytest.raises(EndpointSettingsError, match=r"fit section \[llm\] of the settings \(status 400\)"):
        ask(server, Memory())


def test_a_longer_run_waits_for_the_batch_of_the_shorter_one(server):
    cache = Memory()
    server.polls_until_ended = 10**6
    with pytest.raises(TimeoutError):
        ask(server, cache, seconds=0.3, requests=REQUESTS[1:4])
    server.polls_until_ended = 1
    assert ask(server, cache) == []
    assert [len(server.files[batch["input_file_id"]]) for batch in server.batches] == [3, 3]
    assert len(cache) == 6


def test_a_fault_while_it_waits_does_not_end_the_wait(server):
    server.faults_at_polls = 2
    cache = Memory()
    assert ask(server, cache) == []
    assert (server.faults_at_polls, len(server.batches), len(cache)) == (0, 1, 6)


@pytest.mark.parametrize("answer", [b"<html>hello</html>", b"[]", b'{"data": [{"id": "scripted"}]}'])
def test_where_no_batch_api_is_it_is_told(server, answer):
    server.get = server.post = lambda *request: answer
    with pytest.raises(EndpointSettingsError, match="no Batch API here; leave out --batch"):
        ask(server, Memory())


def test_a_failed_batch_says_why(server):
    server.ends_as = "failed"
    with pytest.raises(EndpointError, match="batch batch-0 failed: no such model"):
        ask(server, Memory())


def test_only_what_can_be_afforded_is_sent(server):
    price = Price(input=10, output=10)  # 3 tenths of a cent each, 7 by the first estimate
    cache = Memory()
    ask(server, cache, Meter(price, max_cost=0.03))
    assert 0 < len(cache) < 6
    meter = Meter(price, max_cost=0.001)
    with pytest.raises(CostLimitError):
        ask(server, Memory(), meter)
