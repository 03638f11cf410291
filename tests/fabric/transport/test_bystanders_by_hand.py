"""What chips beside an incast keep of what they had, on switches small enough for a sheet of paper."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from datahall.fabric.topology.graph import Fabric, Wire
from datahall.fabric.topology.tree import tree
from datahall.fabric.transport.incast import bystander_fraction


def three_switches() -> Fabric:
    """Three switches of three chips, joined by one whose cables are twice as wide as a chip's port of 1 B/s.

    The first switch is one scale-up domain, to which the six others send.
    """
    whole = tree(9, Wire(1.0), radix=4)
    between = (whole.link_source >= 9) & (whole.link_target >= 9)
    rates = np.where(between, 2.0, 1.0)
    domain = np.repeat([0, 1], [3, 6]).astype(np.int32)
    return msgspec.structs.replace(whole, link_bytes_per_s=rates, domain=domain)


def kept(seed: int, *, holds_back: bool) -> float:
    return bystander_fraction(three_switches(), 4, np.random.default_rng(seed), holds_back=holds_back)


@pytest.mark.parametrize("seed", range(6))
def test_two_chips_behind_the_cables_of_the_senders_fall_to_what_a_sender_gets(seed: int) -> None:
    """Four of six chips send to one, and get a quarter of its port each; the two that are left send to each other.

    On two switches each of them has two senders beside it: alone it has all of its port, for the cable of 2 has room
    for twice a quarter besides; held back it has a quarter as they have.  On one switch they pass no such cable.
    """
    others = np.random.default_rng(seed).permutation(np.arange(3, 9))
    apart = (others[4] < 6) != (others[5] < 6)
    assert kept(seed, holds_back=True) == pytest.approx(0.25 if apart else 1.0)
    assert kept(seed, holds_back=False) == 1.0


def test_either_place_of_the_two_was_drawn() -> None:
    assert {kept(seed, holds_back=True) for seed in range(6)} == {0.25, 1.0}
