"""What a service promises: how soon the first token comes, and how fast the others follow."""

from __future__ import annotations

from math import inf

import msgspec

from datahall.errors import ScenarioError


class Slo(msgspec.Struct, frozen=True, kw_only=True):
    """Limits that a request keeps or breaks; the promise holds when `percentile` of the requests keep each of them."""

    ttft_s: float = inf  # time to the first token
    tpot_s: float = inf  # time per output token after the first
    percentile: float = 0.95

    def __post_init__(self) -> None:
        for name, limit_s in (("ttft", self.ttft_s), ("tpot", self.tpot_s)):
            if not limit_s > 0:
                raise ScenarioError(
                    f"a {name} limit of {limit_s:g} s cannot be kept", hint=f"--{name} 500ms or more"
                )
        if not 0 < self.percentile < 1:
            raise ScenarioError(
                f"percentile {self.percentile:g} is not between 0 and 1", hint="--percentile 95, or 0.95"
            )
