"""The client over real HTTP against a server that misbehaves on purpose."""

import asyncio
import time
from email.utils import formatdate

import pytest

from composer.llm.client import ChatClient, openai_client
from composer.llm.costs import Meter
from composer.llm.errors import (
    CostLimitError,
    EndpointError,
    EndpointSettingsError,
    NoReplyError,
    RequestRefusedError,
)
from composer.llm.replies import code_of
from composer.llm.requests import Request
from composer.llm.settings import LlmSettings, Price


class Memory:
    """A cache that lives as long as the test."""

    def __init__(self):
        self.kept = {}
        self.base_urls = []

    def reply(self, request):
        return self.kept.get((request.hash, request.draw))

    def keep_reply(self, request, reply, base_url):
        self.kept.setdefault((request.hash, request.draw), reply)
        self.base_urls.append(base_url)

    def request(self, hash):
        return None

    def replies(self):
        return list(self.kept.values())


def requests(count):
    return [
        Request.of({"model": "scripted", "messages": [{"role": "user", "content": f"{n}"}]})
        for n in range(count)
    ]


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def ask(url, wanted, cache=None, *, meter=None, patience=60.0, **settings):
    """Ask for all requests at once; an exception stands in the place of its reply."""

    async def all_of_them():
        chosen = LlmSettings(base_url=url, **settings)
        async with openai_client(chosen) as opened:
            client = ChatClient(opened, cache or Memory(), chosen, meter or Meter(), patience)
            replies = await asyncio.gather(*map(client.reply, wanted), return_exceptions=True)
            return client, replies

    return asyncio.run(all_of_them())


def test_a_reply_is_kept_byte_for_byte_and_not_asked_for_again(endpoint):
    server, cache = endpoint(), Memory()
    _, (reply,) = ask(server.url, requests(1), cache)
    assert code_of(reply).fault is None
    assert cache.replies() == [reply]
    assert cache.base_urls == [server.url]
    _, again = ask("http://127.0.0.1:9/v1", requests(1), cache)
    assert again == [reply]
    assert len(server.bodies) == 1


def test_another_draw_of_the_same_body_is_asked_for(endpoint):
    server, cache = endpoint(), Memory()
    (request,) = requests(1)
    ask(server.url, [request, request.again()], cache)
    assert server.bodies == [request.body, request.body]
    assert len(cache.kept) == 2


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 429},
        {"status": 429, "headers": {"retry-after": "0.2"}},
        {"status": 429, "headers": {"retry-after-ms": "200"}},
        {"status": 503, "headers": {"retry-after": formatdate(0, usegmt=True)}},
        {"status": 500},
        {"status": 408},
        {"reset": True},
        {"body": b"<html>bad gateway</html>"},
        {"body": b'{"error": "overloaded"}'},
        {"body": b'{"choices": [{"message": {"content": "cut'},
    ],
)
def test_a_fault_that_passes_is_asked_again(endpoint, answers, fault):
    server = endpoint(lambda number, body: answers(**fault) if number == 0 else answers())
    _, (reply,) = ask(server.url, requests(1))
    assert code_of(reply).fault is None
    assert len(server.bodies) == 2


def test_a_server_that_never_answers_is_asked_a_second_time(endpoint, answers):
    server = endpoint(lambda number, body: answers(seconds=30 if number == 0 else 0))
    _, (reply,) = ask(server.url, requests(1), request_seconds=2)
    assert code_of(reply).fault is None


def test_a_late_answer_to_a_try_that_was_given_up_changes_nothing(endpoint, answers):
    server = endpoint(
        lambda number, body: answers(content="late", seconds=2.2) if number == 0 else answers(seconds=0.5)
    )
    cache = Memory()
    _, (reply,) = ask(server.url, requests(1), cache, request_seconds=4)
    time.sleep(0.5)
    assert cache.replies() == [reply]
    assert code_of(reply).fault is None


def test_one_limit_covers_all_tries_of_a_request(endpoint, answers):
    server = endpoint(lambda number, body: answers(status=500))
    _, (error,) = ask(server.url, requests(1), request_seconds=1)
    assert isinstance(error, NoReplyError)
    assert "no reply within 1 s: " in str(error)
    assert "500" in str(error)


def test_too_much_halves_the_slots_and_replies_win_them_back(endpoint, answers):
    server = endpoint(
        lambda number, body: answers(status=429, headers={"retry-after": "0.3"}) if number < 8 else answers()
    )
    client, replies = ask(server.url, requests(8), concurrency=8)
    assert all(isinstance(reply, bytes) for reply in replies)
    assert client.throttle.limit == 4 + 8 * 0.25
    server.most_active = 0
    client, _ = ask(server.url, requests(200), concurrency=8)
    assert client.throttle.limit == 8


def test_no_more_requests_are_under_way_than_allowed(endpoint, answers):
    server = endpoint(lambda number, body: answers(seconds=0.02))
    ask(server.url, requests(40), concurrency=5)
    assert server.most_active == 5


def test_an_endpoint_that_only_fails_is_given_up_with_a_clear_message(endpoint, answers):
    server = endpoint(lambda number, body: answers(status=500))
    _, errors = ask(server.url, requests(20), patience=0.5)
    stopped = [error for error in errors if isinstance(error, EndpointError)]
    assert "tries in a row failed, the last one with: " in str(stopped[0])
    assert "run the same command again once the endpoint works" in str(stopped[0])


def test_an_address_where_nobody_listens_is_told_soon():
    _, (error,) = ask("http://127.0.0.1:9/v1", requests(1))
    assert isinstance(error, EndpointError)
    assert "http://127.0.0.1:9/v1: 3 tries in a row failed, the last one with: no connection" in str(error)
    assert "correct llm.base_url or OPENAI_BASE_URL" in str(error)


def test_an_address_where_something_else_answers_is_told_soon(endpoint, answers):
    page = answers(body=b"<html>Welcome</html>", headers={"content-type": "text/html"})
    server = endpoint(lambda number, body: page)
    _, (error,) = ask(server.url, requests(1))
    assert "3 tries in a row failed, the last one with: an answer that is no chat completion" in str(error)
    assert "correct llm.base_url or OPENAI_BASE_URL (most end in /v1)" in str(error)
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    ("fault", "kind", "part"),
    [
        ({"status": 401}, EndpointSettingsError, "the key is refused"),
        ({"status": 404}, EndpointSettingsError, "no such address or model"),
        ({"status": 405}, EndpointSettingsError, "no such address or model"),
        ({"status": 400}, EndpointSettingsError, "refuses the request"),
        (
            {"status": 429, "body": b'{"error": {"message": "pay", "code": "insufficient_quota"}}'},
            EndpointError,
            "quota is used up",
        ),
    ],
)
def test_what_will_not_pass_is_asked_once(endpoint, answers, fault, kind, part):
    server = endpoint(lambda number, body: answers(**fault))
    _, (error,) = ask(server.url, requests(1))
    assert type(error) is kind
    assert part in str(error)
    assert len(server.bodies) == 1


def test_one_refused_request_among_others_is_its_own_matter(endpoint, answers):
    server = endpoint(lambda number, body: answers(status=400 if number == 1 else 200))
    _, replies = ask(server.url, requests(3), concurrency=1)
    assert [type(reply) for reply in replies] == [bytes, RequestRefusedError, bytes]


def test_without_key_and_address_it_is_said_what_to_set():
    with pytest.raises(EndpointSettingsError, match="set OPENAI_API_KEY, or OPENAI_BASE_URL"):
        openai_client(LlmSettings())


@pytest.mark.parametrize("key", ["abc\n", "schlüssel", "Bearer abc"])
def test_a_key_that_cannot_be_one_is_told_but_not_shown(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(EndpointSettingsError) as error:
        openai_client(LlmSettings())
    assert str(error.value).startswith("OPENAI_API_KEY: holds a space")
    assert key.strip() not in str(error.value)


@pytest.mark.parametrize(
    "address",
    ["localhost:8000/v1", "http://[bad/v1", "http://localhost:99999/v1", "http:///v1", "http://a b"],
)
def test_what_is_no_address_is_told_with_its_place(monkeypatch, address):
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(EndpointSettingsError, match=r"^OPENAI_BASE_URL: .* is no address; give one such as"):
        openai_client(LlmSettings())
    with pytest.raises(EndpointSettingsError, match=r"^llm\.base_url: .* is no address"):
        openai_client(LlmSettings(base_url=address))


def test_the_limit_of_costs_is_not_passed(endpoint):
    server = endpoint()
    price = Price(input=10, output=20)  # 100 + 200 tokens: half a cent
    meter = Meter(price, max_cost=0.051)
    _, replies = ask(server.url, requests(30), meter=meter, concurrency=1)
    assert sum(isinstance(reply, bytes) for reply in replies) == len(server.bodies) <= 10
    assert all(isinstance(reply, bytes | CostLimitError) for reply in replies)
    assert meter.cost == pytest.approx(0.005 * len(server.bodies))
    assert (
        meter.line()
        == f"{100 * len(server.bodies):,} + {200 * len(server.bodies):,} tokens, ${meter.cost:.2f}"
    )
