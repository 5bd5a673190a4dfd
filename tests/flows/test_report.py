"""`opweaver report`, and what a reader of a real run's report sees in a browser."""

import shutil

import pytest


@pytest.fixture(scope="module")
def written(small_run, tmp_path_factory):
    """A copy of the small run, for its report."""
    run_dir, _ = small_run
    copy = tmp_path_factory.mktemp("reported") / "run"
    shutil.copytree(run_dir, copy)
    return copy


@pytest.fixture
def report(written, opweaver):
    path = written / "report.html"
    if not path.exists():
        done = opweaver("report", written)
        assert done.returncode == 0, done.stderr
    return path


def test_the_report_of_a_run_lies_in_its_folder(written, opweaver):
    done = opweaver("report", written)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"MB: {written / 'report.html'}\n")
    text = (written / "report.html").read_text(encoding="utf-8")
    assert "<h1>run</h1>" in text
    assert "[policy]" in text
    assert str(written.parent) not in text  # no paths of the machine


def test_sets_and_verdicts_have_reports_too(written, opweaver):
    for options in (
        (written / "dataset", "--compare", written),
        (written / "verdicts.parquet", "--tasks", written / "candidates.parquet"),
    ):
        done = opweaver("report", *options, "--out", "some.html")
        assert done.returncode == 0, done.stderr
        assert (opweaver.folder / "some.html").stat().st_size > 100_000


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["nowhere"], "no such file or folder"),
        (["unfinished"], "has no verdicts.parquet yet"),
        (["task.py", "--out", "unfinished"], "is a folder"),
        (["task.py", "--compare", "nowhere"], "no such file or folder"),
        (["empty"], "holds no .py, .parquet or .jsonl file"),
        (["torn"], "torn/settings.toml: missing or no settings of a run"),
        (["a" * 300], "cannot be used (File name too long); check the path and its rights"),
        (["task.py", "--out", "a" * 300], "cannot be used (File name too long)"),
        (["caf\udce9"], "is not UTF-8; rename the file or folder"),
        (["task.py", "--tasks", "task.py"], "--tasks: belongs to a verdicts.parquet"),
    ],
)
def test_bad_input_is_one_line(opweaver, options, told):
    (opweaver.folder / "unfinished").mkdir()
    (opweaver.folder / "unfinished/ledger.sqlite").touch()
    (opweaver.folder / "task.py").write_text("x = 1\n")
    for name in ("empty", "torn"):
        (opweaver.folder / name).mkdir()
    for name in ("verdicts.parquet", "candidates.parquet", "settings.toml", "environment.json"):
        (opweaver.folder / "torn" / name).write_bytes(b"PAR1")
    done = opweaver("report", *options)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert told in line


def test_a_run_that_lost_a_file_says_how_to_have_it_again(written, opweaver):
    half = shutil.copytree(written, opweaver.folder / "half")
    (half / "candidates.parquet").unlink()
    done = opweaver("report", "half")
    assert (done.returncode, done.stdout) == (2, "")
    assert "half: has no candidates.parquet yet; let `opweaver run` come to its end, or" in done.stderr
    assert opweaver("judge", "half").returncode == 0
    assert opweaver("report", "half").returncode == 0


def test_a_run_whose_rows_are_all_rejected_has_a_report(written, opweaver):
    none = shutil.copytree(written, opweaver.folder / "none")
    settings = none / "settings.toml"
    settings.write_text(settings.read_text().replace("eager_ms_min = 1.0", "eager_ms_min = 99.0"))
    assert opweaver("judge", "none").returncode == 0
    done = opweaver("report", "none")
    assert (done.returncode, done.stderr) == (0, "")
    assert ">too_fast</button>" in (none / "report.html").read_text(encoding="utf-8")


def test_a_row_is_found_opened_and_closed_by_keyboard(report, page):
    page.open(report)
    name = page.texts("#body .name")[1]
    page.type("#search", name)
    page.wait("document.querySelectorAll('#body tr').length === 1")
    assert page.texts("#body .name") == [name]

    page.run("document.querySelector('#body button').focus()")
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("ENTER")
    page.wait("document.getElementById('detail').open")
    assert page.texts("#detail-title") == [name]
    assert "class" in page.texts("#detail .code .k")
    assert any("eager_ms" in fact for fact in page.texts("#detail .facts tr"))
    page.press("ESCAPE")
    page.wait("!document.getElementById('detail').open")
    assert page.run("return document.activeElement.textContent") == name
    assert page.console() == []


def test_arrows_move_between_rows(report, page):
    page.open(report)
    page.run("document.querySelector('#body button').focus()")
    page.press("ARROW_DOWN")
    assert page.run("return document.activeElement.textContent") == page.texts("#body .name")[1]


def test_headings_sort(report, page):
    page.open(report)
    times = [float(text) for text in page.texts("#body .eager_ms")]
    for order, wanted in (("ascending", sorted(times)), ("descending", sorted(times, reverse=True))):
        page.click("th.eager_ms button")
        assert page.run("return document.querySelector('th.eager_ms').ariaSort") == order
        assert [float(text) for text in page.texts("#body .eager_ms")] == wanted


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_is_readable_in_both_themes(report, page, theme):
    page.open(report, theme=theme)
    assert page.faint_texts() == []
    page.click("#body button")
    assert page.faint_texts() == []


def test_the_theme_can_be_chosen_against_the_system(report, page):
    page.open(report, theme="light")
    page.run("localStorage.clear()")
    light = page.run("return getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.run("return getComputedStyle(document.body).backgroundColor") != light
    assert page.texts("#theme") == ["Light theme"]
    page.run("localStorage.clear()")


def test_a_narrow_window_needs_no_sideways_scrolling(report, page):
    page.open(report, width=400)
    assert page.run("return document.documentElement.scrollWidth") <= 400
    assert page.run("return document.querySelector('.rows').getBoundingClientRect().right") <= 400
    page.click("#body button")
    assert page.run("return document.getElementById('detail-body').scrollWidth") <= 400


def test_charts_are_named_for_readers_who_cannot_see_them(report, page):
    page.open(report)
    named = page.run(
        "return [...document.querySelectorAll('.plot svg')].map((each) => [each.role, each.ariaLabel.length])"
    )
    assert len(named) > 8
    assert all(role == "img" and length > 20 for role, length in named)


def test_paper_shows_the_charts_on_white(report, page):
    page.open(report, theme="dark")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.texts("#filters") == page.texts("nav") == []
        legend = "return getComputedStyle(document.querySelector('.legend li'), '::before').printColorAdjust"
        assert page.run(legend) == "exact", "without its colours no series is told from another"
    finally:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_browser_fetches_nothing(report, page):
    page.open(report)
    assert page.run("return performance.getEntriesByType('resource').map((each) => each.name)") == []
