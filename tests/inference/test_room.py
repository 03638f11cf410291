"""The memory that an engine has on a chip, as a figure."""

from __future__ import annotations

import pytest

from datahall.breakdown import false_nodes, given
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.inference.memory.fit import usable_bytes
from datahall.inference.memory.room import shortage_figure, usable_figure

CATALOG = Catalog(user=False)


@pytest.mark.parametrize("chip", CATALOG.chips(), ids=lambda chip: chip.name)
def test_the_figure_is_what_an_engine_takes(chip: Chip) -> None:
    figure = usable_figure(chip)
    assert figure.value == pytest.approx(usable_bytes(chip))
    assert false_nodes(figure) == []
    assert not [node for _, node in figure.walk() if "by hand" in node.note]


def test_what_is_missing_is_what_is_held_less_what_is_usable() -> None:
    chip = CATALOG.chip("h100-sxm")
    held = given("held", usable_bytes(chip) + 1e9, "bytes")
    assert shortage_figure(held, chip).value == pytest.approx(1e9)
