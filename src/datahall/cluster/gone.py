"""Chips that have failed altogether: a plan may leave them out, and what it cannot place beside them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from datahall.catalog import Catalog
from datahall.cluster.wiring import Wiring
from datahall.errors import ScenarioError
from datahall.fabric.design.asked import design_for
from datahall.fabric.flows.failures import links_of
from datahall.fabric.topology.graph import Fabric
from datahall.scenario.sections.failure import Failure


class Gone(NamedTuple):
    """Of chips that are asked for, those that have failed, those that layouts can be placed on, and their wiring."""

    num_out: int
    num_left: int
    wiring: Wiring  # without what is left out


def besides(failure: Failure) -> Failure | None:
    """A failure less the chips and domains that it takes altogether; None where that is all of it."""
    if failure.left_fraction:
        return failure
    less = msgspec.structs.replace(failure, chips=(), domains=())
    return less if less.of_fabric else None


def without_gone(wiring: Wiring) -> Wiring:
    """The wiring with what else has failed."""
    kept = tuple(one for failure in wiring.failures if (one := besides(failure)) is not None)
    return wiring._replace(failures=kept)


def gone_of(wiring: Wiring, catalog: Catalog, num_chips: int) -> Gone:
    """How many of so many chips have failed, and how many are left to layouts.

    A group inside a scale-up domain needs as many chips of one domain: of those that have lost some, the fullest is
    used in part, the others stay idle.  Chips of a torus forward for each other: none of those is left out.
    """
    dead, as_it_is = [one for one in wiring.failures if besides(one) != one], Gone(0, num_chips, wiring)
    if not dead or not wiring.design.topology:
        return as_it_is
    fabric = design_for(wiring.design, catalog, num_chips=num_chips, least_domains=1).fabric
    if fabric.traits.grid:
        return as_it_is
    works = np.ones(fabric.num_hosts, np.bool_)
    for failure in dead:
        works &= _spared(fabric, failure)
    left = np.bincount(fabric.domain[works], minlength=fabric.num_domains)
    whole = left == np.bincount(fabric.domain, minlength=fabric.num_domains)
    placed = int(left[whole].sum() + left[~whole].max(initial=0))
    if not placed:
        return as_it_is
    num_out = max(0, num_chips - int(works.sum()))
    return Gone(num_out, min(num_chips, placed), without_gone(wiring))


def _spared(fabric: Fabric, failure: Failure) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """The chips that a failure does not take altogether."""
    try:
        links_of(fabric, failure)  # refuses what the fabric has not
    except ScenarioError as error:
        error.field = "failure"
        raise
    hosts = np.arange(fabric.num_hosts)
    return ~(np.isin(hosts, failure.chips) | np.isin(fabric.domain, failure.domains))
