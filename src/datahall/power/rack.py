"""Racks: how many servers one holds, what it draws, and how it is cooled."""

from __future__ import annotations

import msgspec

from datahall.catalog import Catalog
from datahall.catalog.entries.site.cooling import Cooling
from datahall.errors import InfeasibleError, option
from datahall.power.cooling import AIR, servers_per_rack, usual_cooling
from datahall.power.site import Machines
from datahall.scenario.sections.operations.site import Site
from datahall.units import fmt


class Rack(msgspec.Struct, frozen=True, kw_only=True):
    """One of the racks of a site."""

    num_servers: int
    power_w: float  # of its servers, by nameplate
    num_racks: int
    cooling: Cooling

    @property
    def is_cooled(self) -> bool:
        """Whether its cooling carries its heat."""
        return self.power_w <= self.cooling.rack_limit_w


def rack_of(machines: Machines, server_w: float, asked: Site, catalog: Catalog) -> Rack:
    """As many servers as the power of a rack is enough for, cooled as was asked or as it can be."""
    if asked.rack_power_w is not None and asked.rack_power_w < server_w:
        raise InfeasibleError(
            f"a rack of {fmt(asked.rack_power_w, 'w', 3)} holds no {machines.server.title}, which may draw "
            f"{fmt(server_w, 'w', 3)}",
            field="rack_power",
            hint=f"at least {option('rack_power', fmt(server_w, 'w', 3))}",
        )
    most_w = asked.rack_power_w or catalog.cooling(asked.cooling or AIR).rack_limit_w
    num = min(servers_per_rack(server_w, most_w), machines.num_servers)
    power_w = num * server_w
    return Rack(
        num_servers=num,
        power_w=power_w,
        num_racks=-(-machines.num_servers // num),
        cooling=catalog.cooling(asked.cooling) if asked.cooling else usual_cooling(catalog, power_w),
    )
