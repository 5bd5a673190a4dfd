"""`opweaver compose --composer llm` against a scripted endpoint: what is asked and kept, how it resumes."""

import json
import os
import signal
import time

import pytest

from data.files import read_candidates
from data.ledger import Ledger

COMMAND = ("compose", "--composer", "llm", "--model", "scripted", "--out", "c.parquet")


@pytest.fixture
def compose(opweaver, tmp_path):
    """The command with an endpoint; a small catalogue keeps it quick."""

    def run(server, *options, start=False, **variables):
        opweaver.environment.update({"OPENAI_BASE_URL": server.url, **variables})
        opweaver.environment.pop("OPENAI_API_KEY", None)
        return (opweaver.start if start else opweaver)(*COMMAND, *options)

    return run


def one_line(done):
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("opweaver: ")]
    return line


def test_candidates_carry_where_they_come_from(compose, endpoint, tmp_path):
    server = endpoint()
    done = compose(server, "--count", 3, "--seed", 5)
    assert done.returncode == 0, done.stderr
    assert "3 replies, 300 + 600 tokens; replies: c.replies.sqlite" in done.stdout
    first, *_ = candidates = read_candidates(tmp_path / "c.parquet")
    assert [candidate.index for candidate in candidates] == [0, 1, 2]
    assert (first.composer, first.llm_mode, first.prompt_version) == ("scripted", "code", "1")
    assert (first.seed, first.repair_turns, first.origin) == (5, 0, "foreign")
    asked = server.bodies[0]["messages"][1]["content"]
    with Ledger.open(tmp_path / "c.replies.sqlite") as ledger:
        requests = {
            candidate.request_hash: ledger.request(candidate.request_hash) for candidate in candidates
        }
    assert asked in [request.messages[1]["content"] for request in requests.values()]


def test_a_second_start_sends_nothing_and_writes_the_same(compose, endpoint, tmp_path):
    server = endpoint()
    assert compose(server, "--count", 4).returncode == 0
    before = (tmp_path / "c.parquet").read_bytes()
    server.bodies.clear()
    assert compose(server, "--count", 4).returncode == 0
    assert (server.bodies, (tmp_path / "c.parquet").read_bytes()) == ([], before)


def test_interrupted_at_half_it_asks_exactly_for_what_is_missing(compose, endpoint, answers, tmp_path):
    server = endpoint(lambda number, body: answers(seconds=0.3 if number < 160 else 600))
    variables = {"OPWEAVER_LLM__CONCURRENCY": "40"}
    process = compose(server, "--count", 400, start=True, **variables)
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
    server.most_active = 0
    done = compose(server, "--count", 400, **variables)
    assert done.returncode == 0, done.stderr
    assert len(server.bodies) == 240
    assert server.most_active == 40
    assert len(read_candidates(tmp_path / "c.parquet")) == 400


def test_a_wrong_task_is_corrected_with_the_exact_error(compose, endpoint, answers, tmp_path):
    def answer(number, body):
        task = answers().content
        return (
            answers() if len(body["messages"]) > 2 else answers(task.replace("import torch\n", "import os\n"))
        )

    server = endpoint(answer)
    assert compose(server, "--count", 1).returncode == 0
    (candidate,) = read_candidates(tmp_path / "c.parquet")
    assert candidate.repair_turns == 1
    _, _, said, objection = server.bodies[1]["messages"]
    assert "import os" in said["content"]
    assert "it uses what a task may not use" in objection["content"]
    assert "import os" in objection["content"]


def test_a_model_that_learns_nothing_is_asked_three_times(compose, endpoint, answers, tmp_path):
    server = endpoint(lambda number, body: answers("I would rather write a poem."))
    done = compose(server, "--count", 1)
    assert "replies without a task: 1 no_code" in done.stdout
    (candidate,) = read_candidates(tmp_path / "c.parquet")
    assert (candidate.reply_fault, candidate.repair_turns) == ("no_code", 2)
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    ("content", "finish", "fault", "asked"),
    [("", "stop", "empty_reply", 3), ("x", "content_filter", "refused", 1), ("x", "length", "truncated", 3)],
)
def test_what_follows_a_reply_without_a_task(
    compose, endpoint, answers, tmp_path, content, finish, fault, asked
):
    server = endpoint(lambda number, body: answers(content, finish=finish))
    assert compose(server, "--count", 1).returncode == 0
    (candidate,) = read_candidates(tmp_path / "c.parquet")
    assert (candidate.reply_fault, len(server.bodies)) == (fault, asked)


def test_a_plan_becomes_a_task(compose, endpoint, answers, tmp_path):
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

    server = endpoint(answer)
    done = compose(server, "--count", 2, "--mode", "plan")
    assert done.returncode == 0, done.stderr
    for candidate in read_candidates(tmp_path / "c.parquet"):
        assert candidate.reply_fault is None
        assert "class Model(nn.Module):" in candidate.code


def test_in_mode_free_the_operators_are_those_that_the_model_names(compose, endpoint, answers, tmp_path):
    named = answers().content.replace(
        "import torch\n", "# operators: torch.nn.Linear, torch.tanh\nimport torch\n"
    )
    server = endpoint(lambda number, body: answers(named))
    assert compose(server, "--count", 1, "--mode", "free").returncode == 0
    (candidate,) = read_candidates(tmp_path / "c.parquet")
    assert candidate.requested_ops == ("torch.nn.Linear", "torch.tanh")


def test_a_dry_run_shows_requests_tokens_and_cost_and_sends_nothing(compose, endpoint, tmp_path):
    server = endpoint()
    (tmp_path / "opweaver.toml").write_text('[llm.prices."scripted"]\ninput = 1.0\noutput = 4.0\n')
    done = compose(server, "--count", 10, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "--- system\nYou write training tasks" in done.stdout
    assert "requests: 10, and 0 replied to before" in done.stdout
    assert "cost: $0.0" in done.stdout
    assert server.bodies == []
    assert os.listdir(tmp_path) == ["opweaver.toml"]


def test_the_limit_of_costs_stops_cleanly_and_a_higher_one_goes_on(compose, endpoint, tmp_path):
    server = endpoint()
    (tmp_path / "opweaver.toml").write_text('[llm.prices."scripted"]\ninput = 10.0\noutput = 20.0\n')
    few = {"OPWEAVER_LLM__CONCURRENCY": "2"}
    done = compose(server, "--count", 20, "--max-cost", 0.05, **few)  # half a cent each
    assert done.returncode == 1
    assert "c.parquet: stopped at the limit of costs with " in one_line(done)
    bought = len(server.bodies)
    assert 0 < bought <= 10
    assert len(read_candidates(tmp_path / "c.parquet")) == bought
    done = compose(server, "--count", 20, "--max-cost", 1, **few)
    assert done.returncode == 0, done.stderr
    assert len(server.bodies) == 20


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (("--count", 1, "--max-cost", 1), 'max_cost needs a price: add [llm.prices."scripted"]'),
        (("--count", 1, "--mode", "poem"), "`llm.mode` is 'poem'"),
        (("--count", 1, "--llm", "cloud"), "`llm.server` is 'cloud'"),
        (("--count", 1, "--composer", "rules", "--dry-run"), "--dry-run: only a model costs anything"),
    ],
)
def test_bad_input_is_told_in_one_line(compose, endpoint, options, part):
    done = compose(endpoint(), *options)
    assert done.returncode == 2
    assert part in one_line(done)


def test_an_endpoint_that_is_not_there_is_told_in_one_line(opweaver):
    opweaver.environment.update({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    done = opweaver(*COMMAND, "--count", 1)
    assert done.returncode == 3
    assert "http://127.0.0.1:9/v1: 3 tries in a row failed" in one_line(done)


def test_the_local_model_says_how_it_is_installed(opweaver, monkeypatch):
    done = opweaver("compose", "--composer", "llm", "--llm", "local", "--out", "c.parquet", "--count", 1)
    if done.returncode == 0:
        pytest.skip("the local model is installed here")
    assert done.returncode == 3
    assert "is missing; install it with `opweaver llm install`" in one_line(done)
