"""A picture that says what the numbers say."""

import re
import xml.etree.ElementTree as ElementTree

from data.funnel import FunnelLine
from data.funnel_picture import PICTURE, funnel_svg

LINES = [
    FunnelLine("source", "forbidden", 5),
    FunnelLine("runtime", "too_fast", 20),
    FunnelLine("runtime", "too_slow", 10),
    FunnelLine("accepted", "accepted", 60),
    FunnelLine("surplus", "accepted", 4),
    FunnelLine("infrastructure", "worker_lost", 1),
]


def texts(svg: str) -> list[str]:
    return [
        element.text or "" for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    ]


def bars(svg: str, kind: str) -> list[float]:
    return [float(width) for width in re.findall(rf'class="{kind}" [^>]* width="([\d.]+)"', svg)]


def test_each_stage_shows_what_is_left_and_what_was_cut():
    svg = funnel_svg(LINES)
    shown = texts(svg)
    assert shown[0] == "100 candidates, 60 accepted"
    assert [shown[shown.index(stage) + 1] for stage in ("source", "build", "runtime", "set", "accepted")] == [
        "95", "95", "65", "65", "60",
    ]  # fmt: skip
    assert "30 cut: too_fast 20, too_slow 10" in shown
    assert "4 more passed and are surplus; 1 without a verdict" in shown
    assert bars(svg, "bar")[0] == 285
    assert bars(svg, "end") == [180]
    assert "reply" not in shown, "no model was asked"


def test_ink_and_background_change_together():
    light, dark = funnel_svg(LINES).split("@media (prefers-color-scheme: dark)")
    for name in ("text {", ".page {", ".quiet {"):
        assert name in light
        assert name in dark


def test_many_reasons_are_summed_up():
    lines = [FunnelLine("build", f"r{n}", n) for n in range(1, 6)]
    assert "15 cut: r5 5, r4 4, r3 3, others 3" in texts(funnel_svg(lines))


def test_the_picture_of_the_readme_is_one_of_ours():
    shown = texts(PICTURE.read_text())
    found = re.fullmatch(r"([\d,]+) candidates, ([\d,]+) accepted", shown[0])
    assert found is not None
    assert shown[shown.index("accepted") + 1] == found[2]
