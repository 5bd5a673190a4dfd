import json
import re

import pytest

from data.report.page import report_html, write_report
from data.report.sets import read_judged_set, read_task_set

MEGABYTE = 10**6


@pytest.fixture(scope="module")
def html(judged):
    return report_html(read_judged_set("run", judged.verdicts, judged.candidates))


def charts_of(html):
    text = re.search(r'<script id="charts" type="application/json">(.*?)</script>', html, re.DOTALL).group(1)
    return {chart["key"]: chart for chart in json.loads(text)}


def test_nothing_is_loaded_from_elsewhere(html):
    assert "default-src 'none'" in html
    assert re.findall(r'<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)="(?!data:)[^"]*"', html) == []
    assert "@import" not in html


def test_the_funnel_adds_up_and_shows_examples(html):
    numbers = charts_of(html)["funnel"]["series"][0]["numbers"]
    assert numbers[0] == 8
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 2  # accepted
    rows = re.search(r"Where every candidate ended.*?<tbody>(.*?)</tbody>", html, re.DOTALL).group(1)
    assert ">too_fast</button>" in rows
    assert 'data-open="5"' in rows
    assert "eager_ms: 0.412346" in rows


def test_times_cover_rejected_candidates_and_show_the_band(html):
    times = charts_of(html)["times"]
    assert times["band"] == [1.0, 100.0]
    assert times["series"][0]["total"] == 4
    assert times["edges"][0] <= 0.4


def test_arity_stands_against_the_published_shares(html):
    arity = charts_of(html)["arity"]
    assert [series["name"] for series in arity["series"]] == ["run", "Ops-6K as published"]
    assert sum(arity["series"][1]["numbers"]) == pytest.approx(1.0, abs=1e-3)
    assert arity["series"][0]["numbers"] == [0, 1, 0, 0, 0, 0]


def test_every_chart_has_a_sentence_and_its_numbers_as_a_table(html):
    for key, chart in charts_of(html).items():
        assert chart["alt"].startswith(chart["title"])
        assert chart["series"][0]["name"] in chart["alt"]
        figure = re.search(rf'id="chart-{key}".*?</figure>', html, re.DOTALL).group(0)
        assert figure.count("<tr>") > 1


def test_rows_keep_their_facts_and_withheld_code_is_nowhere(judged, html, unpacked):
    columns = unpacked(html)["columns"]
    assert columns["eager_ms"][:2] == [24.0, 2.0]
    assert columns["reason"][4] == "contaminated"
    shown = [code is not None for code in columns["code"]]
    assert shown == [True, True, True, False, False, True, True, False]
    assert "output_digest" not in columns


def test_values_that_json_lacks_are_named(judged, unpacked):
    reported = read_judged_set("run", judged.verdicts, judged.candidates)
    reported.rows[0].verdict.evidence["error"] = float("nan")
    assert unpacked(report_html(reported))["columns"]["evidence"][0] == {"error": "nan"}


def test_a_bare_set_has_no_empty_sections(judged, tmp_path):
    (tmp_path / "task.py").write_text(judged.candidates[0].code)
    html = report_html(read_task_set(str(tmp_path / "task.py")))
    assert charts_of(html).keys() == {"source"}
    assert 'id="funnel"' not in html
    assert 'id="times"' not in html


def test_two_sets_side_by_side_compare_what_both_have(judged, original):
    reported = read_judged_set("run", judged.verdicts, judged.candidates)
    html = report_html(reported, read_task_set(str(original)))
    charts = charts_of(html)
    assert [series["name"] for series in charts["operators"]["series"]] == ["run", "cuda_agent_ops_6k"]
    arity, published = (series["numbers"] for series in charts["arity"]["series"][1:])
    assert arity == pytest.approx(published, abs=1e-4)
    assert [series["name"] for series in charts["times"]["series"]] == ["run, eager", "run, compiled"]
    glance = re.search(r"repeated texts.*?</tr>", html, re.DOTALL).group(0)
    assert re.findall(r'<td class="number">(\S+)</td>', glance) == ["0", "352"]


def test_a_set_against_itself_has_two_names(judged):
    reported = read_judged_set("run", judged.verdicts, judged.candidates)
    assert "<title>run against run (other): OpWeaver report</title>" in report_html(reported, reported)


def test_a_release_stays_below_five_megabytes(release, tmp_path):
    reported = read_judged_set("release", release.verdicts, release.candidates)
    write_report(tmp_path / "report.html", reported)
    size = (tmp_path / "report.html").stat().st_size
    assert size < 5 * MEGABYTE
    assert len(reported.members) == 6000


def test_names_that_no_file_can_hold_become_their_escapes(tmp_path):
    row = {"code": "x = '\ud83d'\n", "name": "\ud83d </script>", "ops": ["\udfff"]}
    (tmp_path / "set.jsonl").write_text(json.dumps(row))
    write_report(tmp_path / "report.html", read_task_set(str(tmp_path / "set.jsonl")))
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
