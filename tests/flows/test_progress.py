import io
import threading

import pytest
from rich.console import Console

from flows import progress
from flows.progress import Progress


def shown(terminal: bool, results: list[bool | None]) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120)
    told = Progress(console)
    with told.stage("measuring", 4):
        for result in results:
            told.advance(result)
    return console.file.getvalue()


def test_without_a_terminal_there_are_plain_lines_with_rate_rest_and_accept_share(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0)
    lines = shown(terminal=False, results=[True, False, True]).splitlines()
    assert len(lines) == 3
    assert lines[2].startswith("measuring: 3 of 4, ")
    assert "/s, accepted 2 of 3 (67%), about 0 s left" in lines[2]
    assert "\x1b" not in lines[2]


def test_lines_are_rare():
    assert shown(terminal=False, results=[True, True]) == ""


def test_what_is_not_judged_has_no_accept_share(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0)
    assert "accepted" not in shown(terminal=False, results=[None])


def test_on_a_terminal_there_is_a_bar():
    text = shown(terminal=True, results=[True, False])
    assert "2/4" in text
    assert "accepted 1 of 2 (50%)" in text


def test_many_threads_may_count(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 1000)
    told = Progress(Console(file=io.StringIO()))
    with told.stage("measuring", 4000):
        threads = [
            threading.Thread(target=lambda: [told.advance(True) for _ in range(1000)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert told.line().startswith("measuring: 4000 of 4000")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0 s"), (89, "89 s"), (91, "2 min"), (3600, "60 min"), (7200, "2.0 h")]
)
def test_durations_are_rounded(seconds, text):
    assert progress.duration(seconds) == text
