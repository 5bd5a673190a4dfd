"""Releases through the real client, over HTTP, on a Hub that fails when it is told to."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub
import pytest

from data.errors import InputError, StorageError
from data.hub import Release, check_repo, check_tag, check_token, push
from data.publish import ReleaseFile
from tests.data.local_hub import READER, Repo

REPO = "you/tasks"
CARD = "---\nlicense: apache-2.0\n---\nMade with OpWeaver, release {}\n"


@pytest.fixture
def release(tmp_path):
    """Make the files of a release: a card and tables whose content is the number of the release."""

    def make(number, *places):
        folder = tmp_path / str(number)
        texts = {"README.md": CARD.format(number), **{place: f"{place} of {number}" for place in places}}
        for place, text in texts.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(text)
        return [
            ReleaseFile(place=place, path=folder / place, size=len(text))
            for place, text in sorted(texts.items())
        ]

    return make


def publish(files, tag=None, public=False) -> Release:
    return push(files, REPO, public=public, tag=tag, message="A release")


def content(hub) -> dict[str, str]:
    return {place: raw.decode() for place, raw in hub.repos[REPO].files.items() if place != ".gitattributes"}


TABLES = ("data/train-0.parquet", "data/validation-0.parquet", "rejected/train-0.parquet")


def test_a_release_is_one_private_commit_with_a_tag(hub, release):
    done = publish(release(1, *TABLES))
    repo = hub.repos[REPO]
    assert (repo.private, repo.titles) == (True, ["initial commit", "A release"])
    assert set(content(hub)) == {"README.md", *TABLES}
    assert content(hub)["README.md"] == CARD.format(1)
    assert repo.tags == {"v1": done.commit} == {"v1": repo.commits[-1][0]}
    assert (done.url, done.changed) == (f"{hub.url}/datasets/you/tasks", True)


def test_public_only_where_it_is_said(hub, release):
    publish(release(1, *TABLES), public=True)
    assert hub.repos[REPO].private is False
    with pytest.raises(InputError, match="you/tasks: is public on the Hub; add --public"):
        publish(release(2, *TABLES))
    hub.repos[REPO].private = True
    with pytest.raises(InputError, match="you/tasks: is private on the Hub; leave out --public"):
        publish(release(2, *TABLES), public=True)
    assert len(hub.repos[REPO].commits) == 2


def test_a_second_release_replaces_the_first_in_one_commit(hub, release):
    first = publish(release(1, *TABLES))
    hub.repos[REPO].files["LICENSE"] = b"ours"
    second = publish(release(2, "data/train-0.parquet", "rejected/train-0.parquet"))
    repo = hub.repos[REPO]
    assert len(repo.commits) == 3
    assert set(content(hub)) == {"README.md", "data/train-0.parquet", "rejected/train-0.parquet", "LICENSE"}
    assert content(hub)["data/train-0.parquet"] == "data/train-0.parquet of 2"
    assert repo.tags == {"v1": first.commit, "v2": second.commit}
    assert set(repo.at("v1")[1]) >= set(TABLES), "the first release can still be loaded by its tag"


def test_the_same_release_again_changes_nothing(hub, release):
    first, again = publish(release(1, *TABLES)), publish(release(1, *TABLES))
    assert (again.commit, again.tag, again.changed) == (first.commit, "v1", False)
    assert publish(release(1, *TABLES), tag="2026-12").tag == "2026-12"
    assert len(hub.repos[REPO].commits) == 2
    assert hub.repos[REPO].tags == {"v1": first.commit, "2026-12": first.commit}


def test_a_tag_of_an_earlier_release_is_refused_before_anything_is_sent(hub, release):
    publish(release(1, *TABLES), tag="v1")
    with pytest.raises(InputError, match="the tag v1 is an earlier release; choose another --tag"):
        publish(release(2, *TABLES), tag="v1")
    assert len(hub.repos[REPO].commits) == 2
    assert hub.count("PUT") == 3


def test_a_failure_between_upload_and_commit_publishes_nothing(hub, release):
    first = publish(release(1, *TABLES))
    before = content(hub)
    hub.fail("POST .*/commit/", 500)
    with pytest.raises(
        StorageError, match=r"you/tasks: the Hub failed \(500: .*\); run the same command again"
    ):
        publish(release(2, *TABLES))
    assert content(hub) == before
    assert hub.repos[REPO].tags == {"v1": first.commit}
    assert hub.count("PUT") == 6

    assert publish(release(2, *TABLES)).tag == "v2"
    assert content(hub)["data/train-0.parquet"] == "data/train-0.parquet of 2"
    assert hub.count("PUT") == 6, "nothing is sent twice"


def test_an_upload_that_stops_half_way_leaves_the_old_release(hub, release):
    """Case pb_interrupted_release."""
    shards = [f"data/train-{number}-of-5.parquet" for number in range(5)]
    publish(release(1, *shards))
    before = content(hub)
    sent = hub.count("PUT")
    second = release(2, *shards)
    hub.fail(f"PUT /large/{_digest(second[3])}", 403)
    with pytest.raises(InputError, match=r"you/tasks: the token may not write there \(403: made to fail\)"):
        publish(second)
    assert content(hub) == before, "readers see the old release"
    finished = {oid for oid in hub.large if oid in {_digest(file) for file in second}}
    publish(release(2, *shards))
    assert {text.rpartition(" ")[2] for place, text in content(hub).items() if place in shards} == {"2"}
    assert all(hub.count(f"PUT /large/{oid}") == 1 for oid in finished), "finished shards are not sent again"
    assert hub.count("PUT") - sent == 6, "five shards and the one that failed"


def _digest(file: ReleaseFile) -> str:
    return hashlib.sha256(file.path.read_bytes()).hexdigest()


def test_a_missing_tag_is_made_by_the_next_call(hub, release):
    publish(release(1, *TABLES))
    hub.fail("POST .*/tag/", 503)  # the commit is made, the tag is not
    with pytest.raises(StorageError, match="the Hub failed"):
        publish(release(2, *TABLES))
    done = publish(release(2, *TABLES))
    assert (done.tag, done.changed, len(hub.repos[REPO].commits)) == ("v2", False, 3)


def test_of_two_pushes_at_once_the_second_is_refused(hub, release):
    publish(release(1, *TABLES))
    mine, theirs = release(2, *TABLES), release(3, *TABLES)
    others: list[Release] = []

    def meanwhile():
        thread = threading.Thread(target=lambda: others.append(publish(theirs)))
        thread.start()
        thread.join()

    hub.fail("POST .*/commit/", 0, meanwhile)
    with pytest.raises(StorageError, match=r"somebody else changed it meanwhile \(412: .*look at theirs"):
        publish(mine)
    assert content(hub)["README.md"] == CARD.format(3), "the release of the other one is whole"
    assert hub.repos[REPO].tags["v2"] == others[0].commit
    assert publish(mine).tag == "v3"


@pytest.mark.parametrize(
    ("token", "said"),
    [
        ("hf_wrong", r"does not accept the token \(401: Invalid username or password.\); set HF_TOKEN"),
        (READER, r"the token may not write there \(403: .*\); set HF_TOKEN"),
    ],
)
def test_a_token_that_does_not_do_is_told(hub, release, monkeypatch, token, said):
    hub.repos[REPO] = Repo(private=True)
    hub.repos[REPO].commit({}, "initial commit")
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(InputError, match=f"you/tasks: .*{said}"):
        publish(release(1, *TABLES))
    assert len(hub.repos[REPO].commits) == 1


def test_a_hub_out_of_reach_is_told(hub, release, monkeypatch):
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        StorageError, match=r"http://127.0.0.1:9: cannot be reached .*check the network and HF_E"
    ):
        publish(release(1, *TABLES))


@pytest.mark.parametrize("answer", [b"<html>log in</html>", b"{}", b"[]", b"null"])
def test_a_server_that_is_no_hub_is_told(release, monkeypatch, answer):
    """A log-in page of the network, say."""
    handler = type("Other", (BaseHTTPRequestHandler,), {"do_POST": lambda self: reply(self, answer)})
    monkeypatch.setattr(handler, "log_message", lambda *_: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        with pytest.raises(StorageError, match="something answers there, but no Hub; check HF_ENDPOINT"):
            publish(release(1, *TABLES))
        server.shutdown()


def reply(handler, content):
    handler.rfile.read(int(handler.headers["Content-Length"]))
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def test_a_name_that_is_taken_by_another_kind_of_repository_is_told(hub, release):
    hub.fail("POST /api/repos/create", 409)
    with pytest.raises(InputError, match=r"you/tasks: not found on the Hub \(404.*check --repo"):
        publish(release(1, *TABLES))
    assert hub.repos == {}


def test_a_repository_of_something_else_is_not_touched(hub, release):
    for files in ({"README.md": b"My thesis"}, {"data/train.csv": b"1,2"}):
        hub.repos[REPO] = Repo(private=True)
        hub.repos[REPO].commit(files, "initial commit")
        with pytest.raises(InputError, match="you/tasks: holds something else than a dataset of ours"):
            publish(release(1, *TABLES))
        assert hub.repos[REPO].files == files


@pytest.mark.parametrize(
    "name", ["tasks", "you/tasks/more", "you/", "you/ta sks", "../tasks", "you/tasks.git"]
)
def test_a_name_that_no_repository_can_have_is_told(name):
    with pytest.raises(InputError, match=r"not of the form ORG/NAME"):
        check_repo(name)


@pytest.mark.parametrize("tag", ["main", "v 1", "-v", "a..b", "v1^", ""])
def test_a_tag_that_no_release_can_have_is_told(tag):
    with pytest.raises(InputError, match=r"no name of a release; use letters"):
        check_tag(tag)
    check_tag("v1.0+cu128")
    check_tag(None)


def test_without_a_token_nothing_is_tried(monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(InputError, match="no token for the Hub; set HF_TOKEN"):
        check_token()
    for token in ("hf_\xe9", "hf_a hf_b"):
        monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(InputError, match="holds signs that no token has; set HF_TOKEN"):
            check_token()
    check_repo(REPO)
