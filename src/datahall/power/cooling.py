"""What carries the heat out of a rack, and where air stops.

    flow = P / (ρ c ΔT)

Water carries 3,500 times as much heat as air in the same volume.  A rack of 120 kW warms 172 L of water a minute by
10 K, or 6.6 m³ of air a second by 15 K: a gale through the door of a rack.
Reference: density and heat capacity at 20 °C and one atmosphere, CRC Handbook of Chemistry and Physics.
"""

from __future__ import annotations

from math import floor
from typing import NamedTuple

from datahall.catalog import Catalog
from datahall.catalog.entries.site.cooling import Cooling

AIR, LIQUID = "air", "liquid"
HEAT_J_PER_M3_KELVIN = {AIR: 1.204 * 1006.0, LIQUID: 998.2 * 4184.0}  # ρ c
DOOR_M2 = 0.6 * 2.0  # the front of a rack


class Flow(NamedTuple):
    """What one way to cool has to move through a rack."""

    cooling: str
    m3_per_s: float
    speed_m_per_s: float  # through the whole front; of liquids nobody asks
    carries: bool  # whether racks of that power are cooled so


def flow_m3_per_s(power_w: float, rise_kelvin: float, cooling: str) -> float:
    """Volume of air or water that carries some heat away [m³/s].

    >>> round(flow_m3_per_s(120e3, 10.0, LIQUID) * 6e4), round(flow_m3_per_s(120e3, 15.0, AIR), 1)
    (172, 6.6)
    """
    return power_w / (HEAT_J_PER_M3_KELVIN[cooling] * rise_kelvin)


def rack_flow(cooling: Cooling, rack_w: float) -> Flow:
    """What a rack of some power needs of one way to cool."""
    volume = flow_m3_per_s(rack_w, cooling.rise_kelvin, cooling.name)
    return Flow(cooling.name, volume, volume / DOOR_M2, rack_w <= cooling.rack_limit_w)


def usual_cooling(catalog: Catalog, rack_w: float) -> Cooling:
    """Air while it carries the heat of a rack, then a liquid."""
    air = catalog.cooling(AIR)
    return air if rack_w <= air.rack_limit_w else catalog.cooling(LIQUID)


def servers_per_rack(server_w: float, rack_w: float) -> int:
    """Servers that the power of a rack is enough for, at least one.

    >>> servers_per_rack(10.2e3, 40e3), servers_per_rack(120e3, 40e3)
    (3, 1)
    """
    return max(1, floor(rack_w / server_w + 1e-9))
