"""The page is one file that needs nothing from outside."""

import re
from html import unescape
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest

from datahall.answer import Answer, Axis, Column, LineChart, ScatterChart, Series, StackChart, Table
from datahall.report import render, write
from datahall.report.charts.chart import LETTER, RIGHT, WIDTH, Labels, Scale, decades, steps, svg

VOID = {"meta"}


class _Strict(HTMLParser):
    """Fails on a tag that is closed out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        if known.get("id"):
            self.ids.add(str(known["id"]))
        if tag == "a":
            self.links.add(str(known["href"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_tags_match_and_links_lead_somewhere(answer: Answer) -> None:
    reader = _Strict()
    reader.feed(render(answer, "html"))
    assert reader.open == []
    assert {f"#{name}" for name in reader.ids} >= reader.links
    assert reader.links


def test_nothing_is_fetched(answer: Answer) -> None:
    page = render(answer, "html")
    assert not re.search(r"https?://|//[a-z]|url\(|@import|<script|<link|<img|<iframe|srcset|src=", page)


def test_what_a_source_says_is_text_not_markup(answer: Answer) -> None:
    page = render(answer, "html")
    assert "A &lt;vendor&gt; datasheet &amp; whitepaper" in page
    assert "<vendor>" not in page


def test_light_dark_print_and_narrow(answer: Answer) -> None:
    page = render(answer, "html")
    for words in (
        "prefers-color-scheme: dark",
        "@media print",
        "@media (max-width",
        'name="viewport"',
        'lang="en"',
    ):
        assert words in page


def test_tables_and_charts_can_be_read_aloud(answer: Answer) -> None:
    page = render(answer, "html")
    assert '<th scope="col">chip</th>' in page
    assert page.count('role="img"') == len(answer.charts)
    assert 'class="chosen"' in page


def test_the_breakdown_opens_and_closes(answer: Answer) -> None:
    assert "<details open><summary>step <b>3.346 ms [3.01 ms – 4.02 ms]</b>" in render(answer, "html")


def test_a_notebook_shows_the_same(answer: Answer) -> None:
    assert answer._repr_html_() in render(answer, "html")


def test_every_point_of_a_roofline_says_its_name(answer: Answer) -> None:
    drawn = svg(answer.charts[0])
    assert "<title>qkv: 20 %</title>" in drawn
    assert ">head</text>" in drawn
    assert "nan" not in drawn


def test_labels_never_cover_each_other() -> None:
    labels = Labels(500, 0, 0, 500)
    placed = [labels.place(100, 100, "operator", 4) for _ in range(40)]
    places = re.findall(r'x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)"', "".join(placed))
    assert 3 < len(places) == len(set(places)) < 40


@pytest.mark.parametrize(("low", "high"), [(1.0, 1e3), (0.2, 3e14), (5e-9, 6e-9)])
def test_ticks_lie_on_the_axis(low: float, high: float) -> None:
    assert all(low * 0.999 <= tick <= high * 1.001 for tick in decades(low, high))
    assert all(low - 1e-12 <= tick <= high * 1.001 for tick in steps(low, high))


def test_a_scale_runs_from_end_to_end() -> None:
    scale = Scale(1.0, 100.0, 0.0, 50.0, log=True)
    assert (scale(1.0), scale(10.0), scale(100.0)) == (0.0, 25.0, 50.0)


def test_written_page_is_what_was_rendered(answer: Answer, tmp_path: Path) -> None:
    write(render(answer, "html"), tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text(encoding="utf-8") == render(answer, "html")


def texts_of(drawn: str) -> list[tuple[float, float, str, str]]:
    """Left edge, base line, anchor and words of each text of a picture."""
    found = re.findall(
        r'<text class="\w[\w-]*" x="([-\d.]+)" y="([-\d.]+)" text-anchor="(\w+)">([^<]*)<', drawn
    )
    return [(float(x), float(y), anchor, words) for x, y, anchor, words in found]


MANY = (
    "kernels", "tensor and expert exchange", "gathering sharded weights", "gradient exchange",
    "messages between stages", "optimizer", "fixed costs", "waiting for the slowest rank", "bubble",
)  # fmt: skip


def test_a_legend_of_many_names_stays_inside_and_above_the_bars() -> None:
    chart = StackChart(title="step", unit="s", rows=("a", "b"), parts={name: (1.0, 2.0) for name in MANY})
    drawn = svg(chart)
    names = {words: (x, y) for x, y, _, words in texts_of(drawn) if words in MANY}
    assert set(names) == set(MANY)
    assert all(x >= 0 for x, _ in names.values())
    bars = [float(y) for y in re.findall(r'<rect x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="18"', drawn)]
    assert max(y for _, y in names.values()) < min(bars)
    for one, other in combinations(names, 2):
        same_line = names[one][1] == names[other][1]
        apart = abs(names[one][0] - names[other][0]) > LETTER * min(len(one), len(other))
        assert not same_line or apart
    assert float(re.search(r'viewBox="0 0 \d+ (\d+)"', drawn)[1]) > max(bars)  # type: ignore[index]


def test_each_part_of_a_bar_has_a_colour_of_its_own_in_light_and_dark(answer: Answer) -> None:
    chart = StackChart(title="step", unit="s", rows=("a",), parts={name: (1.0,) for name in MANY})
    used = re.findall(r'height="18" fill="var\((--\w+)\)"', svg(chart))
    assert len(set(used)) == len(MANY)
    style = render(answer, "html")
    for name in used:
        light, dark = re.findall(rf"{name}: (#\w+)", style)
        assert light != dark


def test_a_legend_of_lines_stands_above_the_axes() -> None:
    chart = LineChart(
        title="lines", x=Axis("x"), y=Axis("time", "s"),
        series=tuple(Series(name, (0.0, 1.0), (1.0, 2.0)) for name in MANY),
    )  # fmt: skip
    drawn = svg(chart)
    lowest = max(y for x, y, _, words in texts_of(drawn) if words in MANY)
    highest = min(
        float(y) for y in re.findall(r'class="grid" x1="[\d.]+" y1="[\d.]+" x2="[\d.]+" y2="([\d.]+)"', drawn)
    )
    assert lowest < highest


@pytest.mark.parametrize("words", ["95 % of", "4.3 ms and", "1,626 tokens/s", "123 GB", "7 requests/s."])
def test_a_number_stays_with_its_unit(words: str) -> None:
    answer = Answer(kind="example", headline=f"It takes {words} here.")
    assert words.split()[0] + "\N{NO-BREAK SPACE}" in render(answer, "html")


def test_what_was_asked_is_named_and_counted_as_a_person_would() -> None:
    inputs = {
        "num_tokens": 15e12,
        "ttft_s": 1.0,
        "rate_per_s": 20.0,
        "headroom_fraction": 0.1,
        "working_set_bytes": 2e9,
        "nic_bytes_per_s": 50e9,
    }
    page = render(Answer(kind="example", headline="It does.", inputs=inputs), "html")
    for said in ("tokens 15T", "ttft 1 s", "rate 20/s", "headroom 10 %", "working set 2 GB", "nic 50 GB/s"):
        assert f" · {said}" in page


def test_each_command_to_copy_is_a_line() -> None:
    commands = ("datahall show chip h100", 'datahall plan serve x --chips "h200"')
    page = render(Answer(kind="example", headline="It does.", next_commands=commands), "html")
    block = re.search(r"<pre>(.*?)</pre>", page, re.S)
    assert block is not None
    assert unescape(re.sub(r"<[^>]+>", "", block[1])).splitlines() == list(commands)


def test_a_long_text_in_a_table_keeps_room_and_a_short_one_its_line() -> None:
    rows = (("tp 2, dp 1024, zero 3 in groups of 256, mb 1", 3.5),), (("tp 2", 3.5),)
    classes = []
    for one in rows:
        table = Table(title="layouts", columns=(Column("layout"), Column("step", "s")), rows=one)
        page = render(Answer(kind="example", headline="It does.", tables=(table,)), "html")
        classes.append(re.search(r'<td class="(\w)">tp', page)[1])  # type: ignore[index]
    assert classes == ["t", "s"]
    assert re.search(r"td\.t \{ min-width: \d+rem", page)
    assert re.search(r"td\.s \{ white-space: nowrap", page)


def test_a_legend_stands_beside_the_picture_too(answer: Answer) -> None:
    """On a phone the picture is wider than the screen, and its right end out of sight."""
    page = render(answer, "html")
    for chart in answer.charts:
        drawn = svg(chart)
        inside = re.search(r'<g class="legend">(.*?)</g>', drawn)
        told = [words for *_, words in texts_of(inside[1])] if inside else []
        beside = re.search(
            r'<p class="legend" aria-hidden="true">((?:(?!</p>).)*)</p><div class="scroll">'
            + re.escape(drawn),
            page,
        )
        assert told == (re.findall(r"</i>([^<]*)</span>", beside[1]) if beside else [])
    assert re.search(
        r"@media \(max-width: \d+px\) \{.*p\.legend \{ display: block.*svg \.legend \{ display: none",
        page,
        re.S,
    )


def test_one_thing_alone_needs_no_legend() -> None:
    alone = StackChart(title="held", unit="s", rows=("a", "b"), parts={"held": (1.0, 2.0)})
    assert "legend" not in svg(alone)
    assert "held</text>" not in svg(alone)


@pytest.mark.parametrize("kind", [LineChart, ScatterChart])
def test_one_line_or_cloud_has_no_legend_beside_it_either(kind: type[LineChart] | type[ScatterChart]) -> None:
    axis = Axis("time", "s", log=True)
    one, other = (Series(name, (1.0, 2.0), (1.0, 2.0)) for name in "ab")
    pages = [
        render(
            Answer(kind="x", headline="x", charts=(kind(title="x", x=axis, y=axis, series=series),)), "html"
        )
        for series in ((one,), (one, other))
    ]
    assert ['<p class="legend"' in page for page in pages] == [False, True]


def test_a_whole_line_is_drawn_over_dashed_ones() -> None:
    chart = LineChart(
        title="lines", x=Axis("x"), y=Axis("time", "s"),
        series=(Series("chosen", (0.0, 1.0), (1.0, 2.0)), Series("other", (0.0, 1.0), (1.0, 2.0), dashed=True)),
    )  # fmt: skip
    drawn = re.findall(
        r'<path class="series" d="[^"]*" stroke="(var\(--c\d\))"( stroke-dasharray)?', svg(chart)
    )
    assert [(color, bool(dashed)) for color, dashed in drawn] == [("var(--c2)", True), ("var(--c1)", False)]


def test_a_name_in_the_headline_is_not_broken_at_its_hyphen() -> None:
    answer = Answer(kind="example", headline="It needs 8 × b200-sxm <now> - or h200-sxm: all-reduce.")
    title = re.search(r"<h1>(.*)</h1>", render(answer, "html"))
    assert title is not None
    assert re.findall(r"<span>(.*?)</span>", title[1]) == ["b200-sxm", "h200-sxm", "all-reduce"]


def test_a_page_that_explains_begins_with_the_chain_and_opens_it(answer: Answer) -> None:
    figure = answer.figure
    assert figure is not None
    plain, explained = (render(answer, "html", explain=one) for one in (False, True))
    assert explained.index("the chain behind it") < explained.index("<svg") < explained.index("<table")
    assert plain.index("<svg") < plain.index("<table") < plain.index("how it adds up")
    folds = sum(bool(one.parts) for _, one in figure.walk())
    assert plain.count("<details") == explained.count("<details") == folds
    assert plain.count("<details open") == 1
    assert explained.count("<details open") == folds  # of so short a chain, all of it
    assert "The band holds eight of ten measurements: 41 points" in explained


@pytest.mark.parametrize(
    ("unit", "high", "title"),
    [
        ("tokens_per_s", 1e6, "rate [tok/s]"),
        ("flop_per_byte", 100.0, "rate [FLOP/B]"),
        ("bytes_per_s", 1e12, "rate"),
    ],
)
def test_a_long_unit_stands_in_the_title_of_its_axis_once(unit: str, high: float, title: str) -> None:
    axis = Axis("rate", unit, log=True)
    chart = LineChart(title="lines", x=axis, y=axis, series=(Series("a", (1.0, high), (1.0, high)),))
    said = [words for *_, words in texts_of(svg(chart))]
    assert said.count(title) == 2
    ticks = [words for words in said if words != title]
    assert all(("/" in words) == (unit == "bytes_per_s") for words in ticks)
    for x, _, anchor, words in texts_of(svg(chart)):  # nothing leaves the picture
        width = LETTER * len(words)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        assert left >= 0
        assert left + width <= WIDTH + 0.1


@pytest.mark.parametrize("unit", ["s", "bytes", "requests/s"])
def test_what_is_said_at_the_end_of_a_bar_stays_inside(unit: str) -> None:
    chart = StackChart(title="held", unit=unit, rows=("a", "a longer one"), parts={"x": (1.2345, 9.8765)})
    for x, _, anchor, words in texts_of(svg(chart)):
        width = LETTER * len(words)
        assert (x >= width) if anchor == "end" else (x + width <= WIDTH)


def test_bars_without_length_are_drawn() -> None:
    chart = StackChart(title="held", unit="s", rows=("a",), parts={"x": (0.0,)})
    assert 'width="0.0"' in svg(chart)


@pytest.mark.parametrize(
    ("headline", "said"), [("It does not fit.", 1), ("No: it is late.", 0), ("No row fits.", 0)]
)
def test_a_no_is_said_once(headline: str, said: int) -> None:
    page = render(Answer(kind="example", headline=headline, verdict="no"), "html")
    assert page.count("The answer is no.") == said


def test_an_axis_of_shares_ends_at_the_whole() -> None:
    axis = Axis("share", "fraction")
    chart = LineChart(
        title="lines", x=axis, y=Axis("time", "s"), series=(Series("a", (0.0, 0.99), (1.0, 2.0)),)
    )
    ticks = {words: x for x, _, anchor, words in texts_of(svg(chart)) if anchor == "middle"}
    assert ticks["100 %"] == pytest.approx(RIGHT, abs=LETTER * 3)
    assert max(ticks.values()) == ticks["100 %"]
