"""Draws where a run's candidates went: `python -m data.funnel_picture VERDICTS.parquet [OUT.svg]`.

One bar per stage shows how many candidates are still there after it. The picture brings its own background,
and swaps background and ink together in a dark theme, so that its text is readable on any page.
"""

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

from data.errors import InputError, StorageError
from data.files import read_verdicts
from data.funnel import QUESTIONS, FunnelLine, funnel
from data.tables import replacing

PICTURE = Path(__file__).parents[1] / "docs" / "funnel.svg"

_WIDTH, _ROW, _TOP, _BAR_LEFT, _BAR_WIDTH, _TEXT_LEFT = 960, 30, 64, 130, 300, 500
_REASONS_SHOWN = 3
_STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .quiet { fill: #59636e } .number { text-anchor: end }
.page { fill: #ffffff; stroke: #d1d9e0 } .track { fill: #eaeef2 }
.bar { fill: #4f7cba } .end { fill: #2d8a4e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .quiet { fill: #9ea7b3 }
.page { fill: #0d1117; stroke: #3d444d } .track { fill: #262c36 }
.bar { fill: #6f9fe0 } .end { fill: #4cb071 }
}"""


def funnel_svg(lines: Sequence[FunnelLine]) -> str:
    """Return the picture of a funnel as the text of an SVG file."""
    total = sum(line.candidates for line in lines)
    ends = {name: sum(line.candidates for line in lines if line.stage == name) for name in _ends()}
    rows: list[str] = []
    left = total
    for stage, question in QUESTIONS.items():
        cut = [line for line in lines if line.stage == stage]
        if stage == "reply" and not cut:
            continue  # no model was asked
        left -= sum(line.candidates for line in cut)
        rows.append(_row(len(rows), stage, left, total, _rejects(cut) or question, "bar", bool(cut)))
    accepted, surplus, open_ = ends.values()
    also = [f"{surplus:,} more passed and are surplus"] if surplus else []
    also += [f"{open_:,} without a verdict"] if open_ else []
    rows.append(_row(len(rows), "accepted", accepted, total, "; ".join(also), "end", False))
    height = _TOP + _ROW * len(rows) + 16
    title = f"{total:,} candidates, {accepted:,} accepted"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">
<title>{title}</title>
<desc>Candidates that are left after each stage of the filters, and the reasons of those that are not.</desc>
<style>{_STYLE}
</style>
<rect class="page" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{height - 1}" rx="8"/>
<text class="title" x="20" y="32">{title}</text>
<text class="quiet" x="20" y="52">left after each stage; what was cut there, or what the stage asks</text>
{chr(10).join(rows)}
</svg>
"""


def _ends() -> tuple[str, str, str]:
    return "accepted", "surplus", "infrastructure"


def _row(place: int, name: str, left: int, total: int, text: str, kind: str, cut: bool) -> str:
    top = _TOP + _ROW * place
    width = _BAR_WIDTH * left / total if total else 0
    return f"""<text x="20" y="{top + 19}">{name}</text>
<rect class="track" x="{_BAR_LEFT}" y="{top + 6}" width="{_BAR_WIDTH}" height="18" rx="3"/>
<rect class="{kind}" x="{_BAR_LEFT}" y="{top + 6}" width="{width:.1f}" height="18" rx="3"/>
<text class="number" x="{_TEXT_LEFT - 14}" y="{top + 19}">{left:,}</text>
<text{"" if cut else ' class="quiet"'} x="{_TEXT_LEFT}" y="{top + 19}">{escape(text)}</text>"""


def _rejects(cut: Sequence[FunnelLine]) -> str:
    """Return the most frequent reasons in words, such as `12 cut: too_fast 10, padded 2`."""
    if not cut:
        return ""
    cut = sorted(cut, key=lambda line: -line.candidates)
    named = [f"{line.reason} {line.candidates:,}" for line in cut[:_REASONS_SHOWN]]
    rest = sum(line.candidates for line in cut[_REASONS_SHOWN:])
    return f"{sum(line.candidates for line in cut):,} cut: " + ", ".join(
        named + ([f"others {rest:,}"] * bool(rest))
    )


def main(arguments: Sequence[str]) -> None:
    """Draw the funnel of a `verdicts.parquet`."""
    if len(arguments) not in (1, 2):
        sys.exit("usage: python -m data.funnel_picture VERDICTS.parquet [OUT.svg]")
    out = Path(arguments[1]) if len(arguments) == 2 else PICTURE
    try:
        verdicts = [judged.verdict for judged in read_verdicts(Path(arguments[0]))]
        with replacing(out) as temporary:
            temporary.write_text(funnel_svg(funnel(verdicts)), encoding="utf-8")
    except (InputError, StorageError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
