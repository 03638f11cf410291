"""Figures that explain themselves."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datahall.breakdown import Band, Breakdown, Source

SHEET = Source("datasheet", "2024-01", "datasheet")
RUN = Source("our run", "2026-11", "measured")

WEIGHTS = Breakdown(name="weights", value=16e9, unit="bytes", sources=(SHEET,))
RATE = Breakdown(name="bandwidth", value=4.8e12, unit="bytes_per_s", sources=(RUN, SHEET))
READ = Breakdown(
    name="read", value=16e9 / 4.8e12, unit="s", formula="weights / bandwidth", parts=(WEIGHTS, RATE)
)
STEP = Breakdown(
    name="step", value=4e-3, unit="s", parts=(READ, Breakdown(name="rest", value=1e-3, unit="s")),
    band=Band(3.6e-3, 4.4e-3, "64 runs"),
)  # fmt: skip

names = st.text("abc", min_size=1, max_size=3)
trees = st.recursive(
    st.builds(
        lambda name, sources: Breakdown(name=name, value=1.0, unit="s", sources=tuple(sources)),
        names,
        st.lists(st.sampled_from([SHEET, RUN]), max_size=2),
    ),
    lambda parts: st.builds(
        lambda name, below: Breakdown(name=name, value=1.0, unit="s", parts=tuple(below)),
        names,
        st.lists(parts, min_size=1, max_size=3),
    ),
    max_leaves=12,
)


def test_a_part_is_found_by_its_path() -> None:
    assert STEP.at() is STEP
    assert STEP.at("read") is READ
    assert STEP.at("read", "weights") is WEIGHTS


def test_a_part_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(KeyError, match=r"'read' has no part 'rest'; its parts: weights, bandwidth"):
        STEP.at("read", "rest")
    with pytest.raises(KeyError, match="its parts: none"):
        STEP.at("rest", "anything")


def test_a_walk_goes_top_down() -> None:
    assert [(depth, figure.name) for depth, figure in STEP.walk()] == [
        (0, "step"), (1, "read"), (2, "weights"), (2, "bandwidth"), (1, "rest"),
    ]  # fmt: skip
    assert next(STEP.walk(3))[0] == 3


@given(trees)
def test_a_walk_meets_every_figure_once_and_never_skips_a_depth(tree: Breakdown) -> None:
    def count(figure: Breakdown) -> int:
        return 1 + sum(map(count, figure.parts))

    depths = [depth for depth, _ in tree.walk()]
    assert len(depths) == count(tree)
    assert all(later <= earlier + 1 for earlier, later in pairwise(depths))


def test_a_source_is_cited_once_in_the_order_met() -> None:
    assert STEP.citations() == (SHEET, RUN)
    assert str(SHEET) == "datasheet (2024-01, datasheet)"


@given(trees)
def test_citations_are_the_sources_of_the_walk(tree: Breakdown) -> None:
    met = [source for _, figure in tree.walk() for source in figure.sources]
    assert set(tree.citations()) == set(met)
    assert len(tree.citations()) == len(set(met))


def test_a_figure_is_shown_with_its_unit_and_its_band() -> None:
    assert READ.shown == "3.333 ms"
    assert STEP.shown == "4 ms [3.6 ms – 4.4 ms]"
    assert str(STEP) == "step = 4 ms [3.6 ms – 4.4 ms]"


def test_a_figure_survives_json() -> None:
    text = msgspec.json.encode(STEP)
    assert msgspec.json.decode(text, type=Breakdown) == STEP
    assert b'"note"' not in text, "what says nothing is left out"


def test_a_figure_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        STEP.value = 0.0  # type: ignore[misc]
