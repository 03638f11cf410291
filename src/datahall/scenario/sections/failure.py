"""What is out, since when and for how long: one vocabulary for fabrics, training runs and services."""

from collections.abc import Sequence
from typing import Annotated

from datahall.errors import ScenarioError
from datahall.scenario.field import Section
from datahall.scenario.kinds import Flag, Numbers, Quantity, Share, Text


def _part(words: str) -> Numbers:
    return Numbers(words, group=OF_FABRIC, needs=("on",))


OF_FABRIC = "fabric"  # the group of what verbs without a service take


class FabricParts(Section, frozen=True, kw_only=True):
    """What a fabric can lose; how links follow from it: fabric/flows/failures.py."""

    chips: Annotated[tuple[int, ...], _part("Chips, gone altogether, by number from 0.")] = ()
    nics: Annotated[
        tuple[int, ...],
        _part("Network ports by the numbers of their chips, which keep their scale-up links."),
    ] = ()
    links: Annotated[tuple[int, ...], _part("Cables by number, both ways.")] = ()
    switches: Annotated[tuple[int, ...], _part("Switches by number, from the leaves up.")] = ()
    domains: Annotated[tuple[int, ...], _part("Scale-up domains (servers or racks) by number.")] = ()
    cubes: Annotated[tuple[int, ...], _part("Cubes of 4×4×4 chips of a torus by number.")] = ()


FABRIC_PARTS = FabricParts.__struct_fields__
SERVICE_PARTS = ("replicas", "region")


class Failure(FabricParts, frozen=True, kw_only=True):
    """Parts, by number from 0, that are gone or slow (chips=5: the sixth); without a start from the beginning."""

    replicas: Annotated[
        tuple[int, ...],
        Numbers("Replicas of a service, counted over all its pools.", against=(*FABRIC_PARTS, "region")),
    ] = ()
    region: Annotated[str, Text("All replicas of a region.", against=FABRIC_PARTS)] = ""
    start_s: Annotated[float, Quantity("When it fails (default: from the beginning).")] = 0.0
    duration_s: Annotated[float | None, Quantity("Time until the repair (default: never).", above=True)] = (
        None
    )
    reroute_s: Annotated[
        float | None,
        Quantity(
            "Time until flows under way are routed around it (default: of the transport, or of a NIC).",
            needs=("start",),
        ),
    ] = None
    left_fraction: Annotated[
        float,
        Share("Share of its bandwidth that a part keeps.", below=True, needs=FABRIC_PARTS, group=OF_FABRIC),
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


def check_once(failures: Sequence[Failure], index: int) -> None:
    """Refuse a failure that an earlier one says already."""
    if failures[index] in failures[:index]:
        raise ScenarioError("the same failure is said twice", field="failure", hint="say it once")
