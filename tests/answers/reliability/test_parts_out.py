"""How long a part is out: as long as what is in its place there, and what that costs in chip hours."""

from __future__ import annotations

from typing import Any

import pytest

import datahall as dh
from datahall.answer import Answer, Quantity


def parts(answer: Answer) -> dict[str, dict[str, Any]]:
    (table,) = (one for one in answer.tables if one.title == "what one failure takes")
    return {
        str(row["part"]): {
            name: cell.value if isinstance(cell, Quantity) else cell for name, cell in row.items()
        }
        for row in table.records()
    }


@pytest.fixture(scope="module", params=[("nvl72", 576), ("fat-tree", 1024)])
def answer(request: pytest.FixtureRequest) -> Answer:
    on, chips = request.param
    return dh.show_blast_radius(on=on, chips=chips)


def test_a_shelf_is_changed_sooner_than_a_server_is_repaired() -> None:
    """A rack's power shelf and coolant loop are mended where they are; a supply takes its server away."""
    rack = parts(dh.show_blast_radius(on="nvl72", chips=576))
    server = parts(dh.show_blast_radius(on="fat-tree", chips=1024))
    assert rack["power shelf of a rack"]["out_for_s"] == pytest.approx(2.5 * 3600)
    assert rack["coolant loop of a rack"]["out_for_s"] == pytest.approx(16 * 3600)
    assert (
        server["power supply"]["out_for_s"]
        == server["server of 8"]["out_for_s"]
        == pytest.approx(43.3 * 3600)
    )
    assert server["pump or fan"]["out_for_s"] == server["server of 8"]["out_for_s"]


def test_chips_that_are_lost_are_out_for_as_long_as_their_part(answer: Answer) -> None:
    """Failures of a year over twelve months, each for so many hours and chips, less what two take at once."""
    lost = [row for row in parts(answer).values() if row["chips_lost"]]
    assert len(lost) >= 4
    alone = [
        row["chip_hours_a_month"] / (row["chips_lost"] * row["fail_in_a_year"] / 12 * row["out_for_s"] / 3600)
        for row in lost
    ]
    assert alone == pytest.approx([alone[0]] * len(alone))
    assert 0.99 < alone[0] < 1.0
