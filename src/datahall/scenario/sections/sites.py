"""Several sites that train one model: how many, what joins them, and how often they agree."""

from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Count, Quantity
from datahall.scenario.sections.deployment import SLOWEST

MOST_SITES = 1024


class Sites(Section, frozen=True, kw_only=True):
    """Sites among which the replicas of a run are spread."""

    num_sites: Annotated[
        int, Count("Sites that the replicas are spread over.", name="sites", least=2, most=MOST_SITES)
    ] = 2
    wan_bytes_per_s: Annotated[
        float,
        Quantity("What a site sends to the others, one way.", name="wan", least=SLOWEST, example="100Gb/s"),
    ] = 12.5e9
    round_trip_s: Annotated[
        float, Quantity("There and back between two sites.", name="round_trip", most=60.0, example="50ms")
    ] = 0.05
    local_steps: Annotated[
        int, Count("Steps of a site between two exchanges with the others.", most=2**20)
    ] = 500
