"""What a plan may have the least of, a row each: its unit, and the words in which a plan says so.

How much of it a service or a run takes stands in `VALUES` of each planner, under the same word.
"""

from __future__ import annotations

from typing import NamedTuple

from datahall.scenario.words import Aims


class AimRow(NamedTuple):
    """One objective."""

    unit: str
    least_service: (
        str  # what the chosen service has of all kinds of chip, which are {}; it goes on a sentence
    )
    least_run: str  # what the chosen run has of all numbers of chips
    more: str  # a tenth more …
    first: str  # how kinds of chip are ordered


AIM_ROWS: dict[Aims, AimRow] = {
    "cost": AimRow("usd", ", the least of {} of chip", "the least", "a month", "cheapest month first"),
    "chips": AimRow("count", "; the fewest chips of {}", "the fewest chips", "chips", "fewest chips first"),
    "energy": AimRow("j", "; the least energy of {}", "the least energy", "energy", "least energy first"),
    "carbon": AimRow("kg", "; the least carbon of {}", "the least carbon", "carbon", "least carbon first"),
    "time": AimRow(
        "s",
        "; the fastest answers to one who asks alone of {}",
        "the shortest time",
        "time",
        "fastest answers first",
    ),
}
