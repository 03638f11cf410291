"""Latency goals: how soon the first token comes, how fast the others follow, and for how many of the requests."""

from math import inf
from typing import Annotated

from datahall.scenario.field import Section
from datahall.scenario.kinds import Percentile, Quantity
from datahall.units import DAY_S

MOST_WAIT_S = DAY_S  # nobody waits longer than a day, beyond which a clock loses what a message takes
USUAL_PERCENTILE = 0.95


class Promise(Section, frozen=True, kw_only=True):
    """The service-level objective of a service."""

    ttft_s: Annotated[float, Quantity("Most time to the first token.", above=True, most=MOST_WAIT_S)] = 1.0
    tpot_s: Annotated[
        float, Quantity("Most time per output token after the first.", above=True, most=MOST_WAIT_S)
    ] = 0.05
    percentile: Annotated[float, Percentile("Share of requests that must keep both limits.")] = (
        USUAL_PERCENTILE
    )


NO_LIMITS = Promise(ttft_s=inf, tpot_s=inf)
