"""A table on a screen: what gives way where it is narrow."""

from datahall.answer import Column, Table
from datahall.report.table import draw


def test_the_head_of_a_marked_column_keeps_its_words_whole() -> None:
    """What marks a row stands before the first column, and its head needs that room too."""
    table = Table(
        title="chips",
        columns=(Column("chips", "count"), Column("layout")),
        rows=((384, "tp 4, pp 3, cp 2, dp 16, zero 1, mb 1"), (768, "tp 4, dp 192, zero 3")),
        marked=1,
    )
    for width in range(24, 60):
        size = draw(table, width).columns[0].width
        assert size is not None
        assert size >= len("  chips"), width
