"""A shock takes the chips of its nodes, never more than there are, and never less than a failed node does."""

from __future__ import annotations

import pytest
from tests.fabric.designs import design

from datahall.catalog import Catalog
from datahall.reliability.blast.assess import assess
from datahall.reliability.blast.radius import blast_parts
from datahall.scenario.sections.operations.failures import FailureRates

CATALOG = Catalog(user=False)


@pytest.mark.parametrize(
    ("topology", "chip", "chips", "nodes", "lost"),
    [
        ("hgx", "h100-sxm", 1024, 4, 32),  # four servers of eight
        ("hgx", "h100-sxm", 1024, 1000, 1024),
        ("nvl72", "gb200", 1008, 18, 72),  # the trays of a rack
        ("tpu-pod", "tpu-v4", 4096, 1, 64),  # one machine of four, and its cube with it
        ("tpu-pod", "tpu-v4", 4096, 32, 128),
    ],
)
def test_a_shock_takes_its_nodes(topology: str, chip: str, chips: int, nodes: int, lost: int) -> None:
    asked = FailureRates(shock_rate_per_day=1e-3, shock_nodes=nodes)
    parts = blast_parts(design(topology, chips, catalog=CATALOG, chip=chip), asked, CATALOG)
    (shock,) = (one for one in parts if one.rate.name == "shock rate")
    assert shock.num_lost == lost


def test_spares_are_a_share_of_nodes_and_not_of_chips() -> None:
    found = assess(design("nvl72", 1008, catalog=CATALOG), FailureRates(), CATALOG)
    assert found.spares.num > 0
    assert found.spare_fraction == pytest.approx(found.spares.num / 252)
