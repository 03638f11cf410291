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
    replicas: Annotated[
        tuple[int, ...],
        Numbers("Replicas of a service, counted over all its pools.", against=(*FABRIC_PARTS, "region")),
    ] = ()
    region: Annotated[str, Text("All replicas of a region.", against=FABRIC_PARTS)] = ""
    start_s: Annotated[float, Quantity("When it fails (default: from the beginning).")] = 0.0
    duration_s: Annotated[float | None, Quantity("Time until the repair (default: never).", above=True)] = (
        None
    )
    left_fraction: Annotated[
        float,
        Share("Share of its bandwidth that a part keeps.", below=True, needs=FABRIC_PARTS, group="fabric"),
    ] = 0.0
    drain: Annotated[
        bool, Flag("Replicas finish what they have and take nothing new.", needs=SERVICE_PARTS)
    ] = False

    @property
    def of_fabric(self) -> bool:
        """Whether it takes parts of a fabric, not replicas of a service."""
        return any(getattr(self, name) for name in FABRIC_PARTS)

    @property
    def of_service(self) -> bool:
        """Whether it takes replicas of a service."""
        return any(getattr(self, name) for name in SERVICE_PARTS)

    @property
    def is_lasting(self) -> bool:
        """Whether it is there from the beginning and never repaired."""
        return self.start_s == 0.0 and self.duration_s is None
