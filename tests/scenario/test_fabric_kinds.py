"""Sides, ratios, versions and topologies: how people write them, and what cannot be."""

from __future__ import annotations

import pytest

from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.scenario.kinds import Kind, Raw, Reading
from datahall.scenario.kinds.fabrics import STEEPEST, Ratios, Sides, Topology, Version

FILE = Reading(catalog=Catalog(user=False))
NCCL = Version("", library="NCCL", first=(2, 4), last_major=2, example="2.27")


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (Sides(""), "16x16x24", (16, 16, 24)),
        (Sides(""), " 4×4 ", (4, 4)),
        (Sides(""), [4, 2], (4, 2)),
        (Sides("", most=64), "8x8", (8, 8)),
        (Ratios(""), "3:1", (3.0,)),
        (Ratios(""), "1:1,7:2", (1.0, 3.5)),
        (Ratios(""), f"{STEEPEST:g}:1", (STEEPEST,)),
        (NCCL, "2.20", (2, 20)),
        (NCCL, "NCCL 2.19.3", (2, 19)),
        (NCCL, "2.4", (2, 4)),
        (Topology(""), "FatTree", "fat-tree"),
    ],
)  # fmt: skip
def test_it_is_read_as_people_write_it(kind: Kind, raw: Raw, value: object) -> None:
    found = kind.read(raw, FILE)
    assert found == value
    assert kind.read(kind.write(found), FILE) == value


@pytest.mark.parametrize(
    ("kind", "raw", "said"),
    [
        (Sides(""), True, "cannot be read"),
        (Sides(""), "", "cannot be read"),
        (Sides(""), [], "cannot be read"),
        (Sides(""), "4x0", "cannot be read"),
        (Sides(""), "4xfour", "cannot be read"),
        (Sides("", most=64), "8x9", "has 72 chips"),
        (Ratios(""), [], "cannot be read"),
        (Ratios(""), "3", "cannot be read"),
        (Ratios(""), "0:1", "cannot be read"),
        (Ratios(""), "3:0", "cannot be read"),
        (Ratios(""), "1:3", "more bandwidth up than down"),
        (Ratios(""), f"{STEEPEST * 2:g}:1", "too steep"),
        (NCCL, 2.2, "cannot be read"),
        (NCCL, "two", "cannot be read"),
        (NCCL, "2.3", "there is no NCCL"),
        (NCCL, "3.0", "there is no NCCL"),
        (Topology(""), "fat-tre", "is not a topology"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(kind: Kind, raw: Raw, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        kind.read(raw, FILE)
    assert said in caught.value.message
    assert caught.value.hint
