"""The page is one file that needs nothing from outside."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from datahall.answer import Answer
from datahall.report import render, write
from datahall.report.chart import Labels, Scale, decades, steps, svg

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
