"""The way that transports are compared on is the usual one: half of the pairs of chips have no longer one."""

from __future__ import annotations

import pytest
from tests.results import number

import datahall as dh


def message_s(chips: int) -> float:
    """A small message between chips on leaves of 32, each chip a host of its own."""
    found = dh.show_transport(["rocev2"], on="leaf-spine", chips=chips, domain=1, radix=64, senders=16)
    return number(found, "roce_small_message_s")


def test_a_few_chips_on_another_leaf_do_not_lengthen_the_usual_way() -> None:
    """Of 36 chips 32 share a leaf: 1,004 of 1,260 pairs. Of 128 on four leaves three of four pairs are apart."""
    leaf_s, most_s, apart_s = (message_s(chips) for chips in (32, 36, 128))
    assert most_s == pytest.approx(leaf_s)
    assert apart_s > 1.1 * leaf_s
