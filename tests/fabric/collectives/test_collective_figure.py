"""The chain behind a collective is the closed form that the search uses, term by term."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datahall.breakdown import assumed, false_nodes
from datahall.fabric.collectives.algorithms import table
from datahall.fabric.collectives.algorithms.table import closed_form
from datahall.fabric.collectives.figure import Ask, Wires
from datahall.fabric.collectives.system import System, system_of
from datahall.scenario.words import COLLECTIVES, Collective

CHIPS = ("h100-sxm", "h200-sxm", "a100-sxm-80gb", "b200-sxm", "gb200", "mi300x", "gh200", "l40s")


def wires(system: System) -> Wires:
    nic = assumed("NIC", system.nic_bytes_per_s, "bytes_per_s", "a test") if system.nic_bytes_per_s else None
    return Wires(assumed("link", system.scale_up_bytes_per_s, "bytes_per_s", "a test"), nic)


@settings(max_examples=150, deadline=None)
@given(
    chip=st.sampled_from(CHIPS), collective=st.sampled_from(COLLECTIVES), nodes=st.integers(1, 200),
    inside=st.integers(1, 72), exponent=st.floats(3, 11),
    fabric=st.sampled_from(("infiniband", "roce", "efa", "other")),
    level=st.sampled_from((None, "datasheet")),
)  # fmt: skip
def test_every_algorithm_is_the_chain_of_its_parts(
    chip: str,
    collective: Collective,
    nodes: int,
    inside: int,
    exponent: float,
    fabric: str,
    level: str | None,
) -> None:
    system = system_of(chip, num_domain=inside, nic_bytes_per_s=50e9, fabric=fabric, level=level)
    ranks, size = max(2, nodes * inside), 10.0**exponent
    for pair, time in table.times(system, collective, np.array([size]), ranks).items():
        array = assumed("array", size, "bytes", "of the test")
        told = closed_form(Ask(system, wires(system), collective, array, ranks), *pair)
        assert told.figure.value == pytest.approx(float(time[0]), rel=1e-9)
        assert not false_nodes(told.figure)
        assert told.figure.value >= max(told.inside_s, told.across_s) * 0.999
