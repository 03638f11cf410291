"""A server: its chips, and all that stands around them, as its power supplies draw it from the wall.

    DC = n·P + host·n/8 + NICs + load·n·(P − idle)     AC = DC / efficiency

`host` is what an idle server of eight chips draws beside them and its NICs: CPUs, memory, drives, switches of the
domain, fans; `load` what fans, regulators and CPUs add per watt that the chips draw beyond their idle power.
"""

from __future__ import annotations

import msgspec

from datahall.breakdown import Breakdown, assumed, derived, difference, fitted, product, quotient, total
from datahall.catalog.entries.chip import Chip
from datahall.power.chip import idle_power_w
from datahall.power.constants import band_of, constants

MEASURED_CHIPS = 8  # of the servers that were measured
NIC_W = 25.0
NIC = "ConnectX-7 of 400 Gb/s: 24.9 W by its data sheet, without the module"


def server_power(
    chip: Chip,
    each: float | Breakdown,
    num_chips: int = MEASURED_CHIPS,
    *,
    num_nics: int | None = None,
    at_the_wall: bool = True,
) -> Breakdown:
    """Power of one server whose chips draw `each`, a figure or a number [W], with its parts and its band [W].

    It has a NIC for every chip, as the servers that were measured, unless `num_nics` says otherwise.
    """
    found = constants().server
    count = derived("chips of a server", num_chips, "count")
    one = each if isinstance(each, Breakdown) else derived(f"mean power of a {chip.name}", each, "w")
    chips = product("chips", (count, without_band(one)), "w")
    share = derived("of a server of eight chips", num_chips / MEASURED_CHIPS, "ratio")
    nics = product(
        "NICs",
        (
            derived("NICs of a server", num_chips if num_nics is None else num_nics, "count"),
            assumed("of a NIC", NIC_W, "w", NIC),
        ),
        "w",
    )
    idle = product("idle chips", (count, derived("an idle chip", idle_power_w(chip), "w")), "w")
    load = product(
        "fans, regulators and CPUs under load",
        (
            _constant("per watt of the chips", found.load_fraction, "fraction"),
            difference("chips beyond idle", derived("chips", chips.value, "w", "as above"), idle),
        ),
        "w",
    )
    host = product("host", (_constant("an idle server beside chips and NICs", found.host_w, "w"), share), "w")
    drawn = total("DC power of a server", (chips, host, nics, load))
    if at_the_wall:
        supply = _constant("efficiency of the power supplies", found.supply_efficiency, "fraction")
        drawn = quotient("power of a server", drawn, supply, "w")
    return drawn.with_band(*band_of("server", chip), constants().server_fitted_on)


def _constant(name: str, value: float, unit: str) -> Breakdown:
    return fitted(name, value, unit, constants().server_fitted_on, constants().server_source)


def without_band(figure: Breakdown) -> Breakdown:
    """A figure as a part of another that has earned a band of its own: bands are stated once."""
    parts = tuple(without_band(part) for part in figure.parts)
    return msgspec.structs.replace(figure, band=None, parts=parts)


def server_power_w(
    chip: Chip,
    chip_power_w: float,
    num_chips: int = MEASURED_CHIPS,
    *,
    num_nics: int | None = None,
    at_the_wall: bool = True,
) -> float:
    """The same as a number [W].

    Parameters: chip_power_w, the mean power of its chips [W]; num_chips and num_nics, how many it has.

    >>> from datahall.catalog import load
    >>> chip = load().chip("h100")
    >>> server_power_w(chip, 700.0) > server_power_w(chip, 700.0, at_the_wall=False) > 8 * 700.0
    True
    """
    figure = server_power(chip, chip_power_w, num_chips, num_nics=num_nics, at_the_wall=at_the_wall)
    return figure.value
