"""The page in a real browser: rows by the thousand, and texts that try to become part of the page."""

import dataclasses

import pytest

from data.report.page import write_report
from data.report.sets import read_judged_set

HOSTILE = (
    "'''</script><img src=x onerror='document.title = 1'>'''\n<!-- <script>\ndef f(): return '<b>&amp;'\n"
)


def test_thousands_of_rows_are_paged_searched_and_sorted(release, page, tmp_path):
    reported = read_judged_set("release", release.verdicts, release.candidates)
    write_report(tmp_path / "report.html", reported)
    page.open(tmp_path / "report.html")
    assert len(page.texts("#body tr")) == 50
    assert page.texts("#page") == ["Page 1 of 120"]

    page.click("#next")
    assert page.texts("#count") == ["Rows 51 to 100 of 6,000"]
    page.type("#search", "ConvTranspose3d GroupNorm")
    page.wait("document.getElementById('count').textContent.includes('found')")
    assert all("ConvTranspose3d" in text for text in page.texts("#body .ops"))

    page.click("#filters [type=reset]")
    page.wait("document.getElementById('count').textContent === 'Rows 1 to 50 of 6,000'")
    page.click("th.eager_ms button")
    page.click("th.eager_ms button")
    assert page.run("return document.querySelector('th.eager_ms').ariaSort") == "descending"
    slowest = max(row.facts.eager_ms for row in reported.rows)
    assert float(page.texts("#body .eager_ms")[0]) == pytest.approx(slowest, rel=0.01)
    assert page.console() == []


def test_source_never_becomes_part_of_the_page(judged, page, tmp_path):
    reported = read_judged_set("run", judged.verdicts, judged.candidates)
    first = dataclasses.replace(reported.rows[0], code=HOSTILE, name="<i>name</i>")
    write_report(
        tmp_path / "report.html",
        dataclasses.replace(reported, name="<run>", rows=(first, *reported.rows[1:])),
    )
    page.open(tmp_path / "report.html")
    page.click("#body button")
    assert page.run("return document.querySelector('.code code').textContent") == HOSTILE
    assert page.texts("#detail-title") == ["<i>name</i>"]
    assert page.run("return document.title") == "<run>: OpWeaver report"
    assert page.console() == []


def test_a_reason_in_the_funnel_shows_its_rows(judged, page, tmp_path):
    write_report(tmp_path / "report.html", read_judged_set("run", judged.verdicts, judged.candidates))
    page.open(tmp_path / "report.html")
    page.click("[data-reason=too_fast]")
    assert page.texts("#body .name") == ["task_5"]
    page.click("[data-open='4']")
    assert page.texts("#detail-body .notice") == ["The source of a contaminated task is not shown."]


def test_a_browser_that_cannot_unpack_says_so(judged, page, tmp_path):
    write_report(tmp_path / "report.html", read_judged_set("run", judged.verdicts, judged.candidates))
    script = page.driver.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.DecompressionStream"}
    )
    try:
        page.driver.get((tmp_path / "report.html").as_uri())
        page.wait("!document.getElementById('rows-notice').hidden")
        assert "lacks DecompressionStream" in page.texts("#rows-notice")[0]
        assert page.texts("#table") == []
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_kind_of_end_is_readable_in_both_themes(judged, page, tmp_path, theme):
    reported = read_judged_set("run", judged.verdicts, judged.candidates)
    write_report(tmp_path / "report.html", reported, reported)
    page.open(tmp_path / "report.html", theme=theme)
    page.run("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    assert page.faint_texts() == []
    page.click("[data-open='5']")
    assert page.faint_texts() == []


def test_two_sets_side_by_side_fit_a_narrow_window(judged, page, tmp_path):
    reported = read_judged_set("run", judged.verdicts, judged.candidates)
    write_report(tmp_path / "report.html", reported, reported)
    page.open(tmp_path / "report.html", width=400)
    assert page.run("return document.documentElement.scrollWidth") <= 400
