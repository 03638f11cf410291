"""What is out, since when and for how long: one vocabulary for fabrics, training runs and services."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Flag, Numbers, Quantity, Share, Text
from datahall.scenario.words import FABRIC_PARTS, SERVICE_PARTS


class Failure(Section, frozen=True, kw_only=True):
    """Parts that are gone or slow; without a start they are so from the beginning."""

    chips: Annotated[tuple[int, ...], Numbers("Chips, gone altogether.", group="fabric")] = ()
    nics: Annotated[
        tuple[int, ...], Numbers("Network ports of chips, which keep their scale-up links.", group="fabric")
    ] = ()
    links: Annotated[tuple[int, ...], Numbers("Cables, both ways.", group="fabric")] = ()
    switches: Annotated[tuple[int, ...], Numbers("Switches, counted from the first.", group="fabric")] = ()
    domains: Annotated[tuple[int, ...], Numbers("Scale-up domains: servers or racks.", group="fabric")] = ()
    cubes: Annotated[tuple[int, ...], Numbers("Cubes of 4×4×4 chips of a torus.", group="fabric")] = ()
    replicas: Annotated[tuple[int, ...], Numbers("Replicas of a service, counted over all its pools.")] = ()
    region: Annotated[str, Text("All replicas of a region.")] = ""
    start_s: Annotated[float, Quantity("When it fails (default: from the beginning).")] = 0.0
    duration_s: Annotated[float | None, Quantity("Time until the repair (default: never).", above=True)] = (
        None
    )
    left_fraction: Annotated[
        float, Share("Share of its bandwidth that a part keeps.", below=True, group="fabric")
    ] = 0.0
    drain: Annotated[bool, Flag("Replicas finish what they have and take nothing new.")] = False

    @property
    def parts(self) -> tuple[str, ...]:
        """The kinds of part that it names."""
        return tuple(name for name in (*FABRIC_PARTS, *SERVICE_PARTS) if getattr(self, name))
