"""Inputs of a site that change nothing as it is."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.errors import option
from datahall.power.site import building_of
from datahall.scenario.sections.operations.site import USUAL_FACILITY, Site


def idle_inputs(asked: Site, catalog: Catalog, *, swings: bool = True) -> dict[str, str]:
    """A building beside a PUE: what is left for it to say is which part of that are electrical losses.

    They swing with the servers, and cooling does not: nothing else tells the two apart.
    """
    if asked.pue_ratio is None:
        return {}
    pue = option("pue", asked.pue_ratio)
    if not swings:
        return {"facility": f"{pue} says what the building adds, and nothing here tells its parts apart"}
    usual = msgspec.structs.replace(asked, facility=USUAL_FACILITY)
    mine, other = (building_of(one, catalog).electrical.value for one in (asked, usual))
    if mine != other:
        return {}
    return {"facility": f"{pue} says what the building adds, and no more of that are electrical losses in it"}
