"""What routing knows of parts that are slow at the same time."""

from __future__ import annotations

import pytest

from datahall.fabric.flows.detours import fabrics_known
from datahall.fabric.flows.failures import links_of
from datahall.fabric.topology.clos import clos
from datahall.fabric.topology.graph import Wire
from datahall.scenario.sections.failure import Failure

FABRIC = clos(16, Wire(10.0), radix=8, tiers=2)  # four leaves of four chips, two spines: 4 and 5


@pytest.mark.parametrize("reverse", [False, True])
def test_two_failures_of_one_link_leave_the_product_of_what_each_leaves(reverse: bool) -> None:
    """Half of a leaf from 1 s to 5 s and a fifth of a spine from 2 s to 4 s: a tenth of the cables between them."""
    leaf = Failure(switches=(0,), left_fraction=0.5, start_s=1.0, duration_s=4.0)
    spine = Failure(switches=(4,), left_fraction=0.2, start_s=2.0, duration_s=2.0)
    failures = [(one, links_of(FABRIC, one), 0.0) for one in (leaf, spine)]
    known = fabrics_known(failures[::-1] if reverse else failures, FABRIC, "spray")
    of_leaf, of_spine = (links_of(FABRIC, one) for one in (leaf, spine))

    def left(hit: object) -> list[list[float]]:
        """Rates of some links of 10 B/s, from each moment on."""
        return [sorted(set(one.fabric.link_bytes_per_s[hit].round(9).tolist())) for one in known]

    assert [one.at_s for one in known] == [1.0, 2.0, 4.0, 5.0]
    assert left(of_leaf & of_spine) == [[5.0], [1.0], [5.0], [10.0]]
    assert left(of_leaf & ~of_spine) == [[5.0], [5.0], [5.0], [10.0]]
    assert left(of_spine & ~of_leaf) == [[10.0], [2.0], [10.0], [10.0]]
