"""The site that chips stand in: its building, its grid, what its operator allows, and what smooths its power."""

from collections.abc import Iterator
from typing import Annotated

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.scenario.field import Section
from datahall.scenario.idle import does_nothing
from datahall.scenario.kinds import Count, Name, Quantity, Share

USUAL_FACILITY, USUAL_GRID = "hyperscale", "usa"
USUAL_BATTERY = "megapack-2xl"
USUAL_RAMP = "10MW/min"  # of a job that stops, where nobody says what the grid allows
MOST_W = 1e12
MOST_UNITS = 1_000_000
BUILDING, INSIDE, LIMITS, REMEDIES = "building", "inside", "limits", "remedies"  # groups of inputs


class Site(Section, frozen=True, kw_only=True):
    """One site: all chips in it run one job."""

    facility: Annotated[
        str,
        Name(
            "Building, of which the PUE and its parts are known; beside a PUE, how much of it electrical losses are.",
            of="facility",
            group=BUILDING,
        ),
    ] = USUAL_FACILITY
    pue_ratio: Annotated[
        float | None,
        Quantity(
            "Power of the site over that of its IT (default: the building's).",
            least=1.0,
            most=10.0,
            group=BUILDING,
        ),
    ] = None
    storage_share_fraction: Annotated[
        float, Share("Power of storage over that of the servers.", group=INSIDE)
    ] = 0.02
    cooling: Annotated[
        str,
        Name("How racks are cooled: air or liquid (default: air while it can).", of="cooling", group=INSIDE),
    ] = ""
    rack_power_w: Annotated[
        float | None,
        Quantity("Power of a rack (default: what air cools, or one server).", above=True, most=1e7,
                 group=INSIDE),
    ] = None  # fmt: skip
    grid: Annotated[
        str, Name("Electricity grid: texas, virginia, sweden, … .", of="grid", group=BUILDING)
    ] = USUAL_GRID
    coherence_fraction: Annotated[
        float,
        Share("How far servers rise and fall together: 1 one job in step, 0 each by itself.", rare=True),
    ] = 1.0
    time_constant_s: Annotated[
        float,
        Quantity(
            "Time constant of what smooths a chip's power on its way to the wall.", most=10.0, rare=True
        ),
    ] = 10e-3
    site_limit_w: Annotated[
        float | None,
        Quantity("Most that the site may draw.", above=True, most=MOST_W, group=LIMITS),
    ] = None
    swing_limit_w: Annotated[
        float | None,
        Quantity("Most that its power may swing within a step.", above=True, most=MOST_W,
                 group=LIMITS),
    ] = None  # fmt: skip
    ramp_limit_w_per_s: Annotated[
        float | None,
        Quantity(f"Fastest that the grid allows a job to stop (default: no limit; sized for {USUAL_RAMP}).", above=True, most=MOST_W, example=USUAL_RAMP, group=LIMITS),
    ] = None  # fmt: skip
    power_floor_fraction: Annotated[
        float,
        Share(
            "Share of the peak below which chips burn power to stay there.",
            group=REMEDIES,
        ),
    ] = 0.0
    ramp_cap_w_per_s: Annotated[
        float | None,
        Quantity("Ramp that chips keep by burning power before and after.", above=True, most=MOST_W,
                 example="20MW/s", group=REMEDIES),
    ] = None  # fmt: skip
    capacitors_j: Annotated[
        float,
        Quantity(
            "Energy in a chip's power supply (GB300: 65 J).", name="capacitors", most=1e6, group=REMEDIES
        ),
    ] = 0.0
    supercapacitors: Annotated[
        int, Count("Modules of supercapacitors.", least=0, most=MOST_UNITS, group=REMEDIES)
    ] = 0
    battery: Annotated[int, Count("Containers of batteries.", least=0, most=MOST_UNITS, group=REMEDIES)] = 0
    battery_type: Annotated[
        str, Name("Battery that they are, or another store of energy.", of="buffer", group=REMEDIES)
    ] = USUAL_BATTERY

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        if self.power_floor_fraction >= 1.0 and self.ramp_cap_w_per_s is not None:
            yield ScenarioError(
                does_nothing("ramp_cap", f"with {option('power_floor', 1)} there is no ramp"),
                field="ramp_cap",
                hint=f"leave {option('ramp_cap')} out",
            )
