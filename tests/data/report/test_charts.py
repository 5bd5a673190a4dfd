import pytest

from data.report.charts import Names, Series, Values, bars, histogram


def test_a_log_histogram_counts_every_positive_value_once():
    chart = histogram("t", "Times", "ms", [Values("ours", [0.0, 0.5, 1.0, 10.0, 99.0])], caption="", log=True)
    assert sum(chart.series[0].numbers) == chart.series[0].total == 4
    assert chart.edges[0] <= 0.5
    assert chart.edges[-1] > 99.0


def test_the_span_is_on_the_axis_whatever_the_values():
    chart = histogram("t", "Times", "ms", [Values("ours", [5.0])], caption="", span=(1.0, 100.0))
    assert chart.edges[0] <= 1.0
    assert chart.edges[-1] >= 100.0


@pytest.mark.parametrize("values", [[3.0], [3.0, 3.0], [1e-9, 1e12]])
def test_equal_and_extreme_values_have_bins(values):
    for log in (True, False):
        chart = histogram("t", "T", "ms", [Values("ours", values)], caption="", log=log)
        assert sum(chart.series[0].numbers) == len(values)


def test_sets_side_by_side_share_bins_and_are_given_as_shares():
    sets = [Values("ours", [1.0, 2.0]), Values("theirs", [50.0] * 4), Values("unmeasured", [])]
    chart = histogram("t", "Times", "ms", sets, caption="", shares=True)
    assert [series.name for series in chart.series] == ["ours", "theirs"]
    assert sum(chart.series[0].numbers) == pytest.approx(1.0)
    assert max(chart.series[1].numbers) == 1.0


def test_what_was_never_measured_has_no_chart():
    assert histogram("t", "T", "ms", [Values("ours", [])], caption="") is None
    assert bars("b", "B", "rows", [Names("ours", [(), ()])], caption="") is None


def test_the_sentence_beside_a_histogram_tells_its_spread():
    chart = histogram("t", "Times", "ms", [Values("eager", [1.0, 2.0, 3.0])], caption="")
    assert chart.alt == "Times: eager, 3 values, median 2, 5th to 95th percentile 1.1 to 2.9."


def test_bars_count_rows_not_uses():
    chart = bars(
        "b", "Operators", "rows", [Names("ours", [("relu", "relu"), ("relu", "sum"), ()])], caption=""
    )
    assert chart.labels == ("relu", "sum")
    assert chart.series == (Series(name="ours", numbers=(2, 1), total=2),)


def test_bars_show_what_is_frequent_in_either_set():
    ours = Names("ours", [(f"own_{i}",) for i in range(30)])
    theirs = Names("theirs", [("conv",)] * 3)
    chart = bars("b", "Operators", "rows", [ours, theirs], caption="", shares=True)
    assert chart.labels[0] == "conv"
    assert len(chart.labels) == 20
