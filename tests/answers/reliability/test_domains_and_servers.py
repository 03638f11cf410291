"""Domains of chips beside the servers that fail."""

from __future__ import annotations

import pytest

import datahall as dh
from datahall.errors import ScenarioError


@pytest.mark.parametrize(("domain", "near"), [(7, "domain=8"), (12, "domain=8 or domain=16")])
def test_a_domain_that_servers_do_not_make_is_refused(domain: int, near: str) -> None:
    """Servers of eight: with domains of seven, one that fails would take a part of two."""
    with pytest.raises(ScenarioError, match=f"a domain of {domain} chips is no whole number of") as caught:
        dh.show_blast_radius(on="fat-tree", chips=8 * domain, domain=domain)
    assert near in str(caught.value)


@pytest.mark.parametrize("domain", [4, 8, 16])
def test_one_that_divides_them_or_that_they_divide_is_not(domain: int) -> None:
    assert dh.show_blast_radius(on="fat-tree", chips=128, domain=domain).verdict != "no"
