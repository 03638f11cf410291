"""How often nodes fail, and how often spares must suffice."""

from collections.abc import Iterator
from typing import Annotated

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError
from datahall.scenario.field import Section
from datahall.scenario.kinds import Count, Name, Quantity, Share
from datahall.scenario.sections.deployment import MOST_CHIPS
from datahall.units import fmt

USUAL_RATES = "llama-3"  # the largest count by cause
RATES = "rates"  # a group of inputs: whose failures, how often, and for which of them spares are held
MOST_RATE = 100.0  # failures of a node per day: every quarter of an hour
LEAST_RATE = 1e-9  # one in 2.7 million years


class FailureRates(Section, frozen=True, kw_only=True):
    """Published failure rates, or one of one's own, for nodes of some age."""

    like: Annotated[
        str,
        Name(
            f"Whose failure rates and causes (default: of the chip or its family, else {USUAL_RATES}).",
            of="failures",
            flat="failures_like",
            metavar="PRESET",
            group=RATES,
        ),
    ] = ""
    failure_rate_per_node_day: Annotated[
        float | None,
        Quantity(
            "Failures of a node per day, all causes together (default: as published).",
            name="rate",
            flat="failure_rate",
            least=LEAST_RATE,
            most=MOST_RATE,
            metavar="RATE",
            example="4e-3",
            group=RATES,
        ),
    ] = None
    job_rate_per_day: Annotated[
        float,
        Quantity(
            "Failures of a job per day whatever its size, on top (2.2 at Meta's RSC-1).",
            name="job",
            flat="job_failures",
            most=MOST_RATE,
            metavar="RATE",
            rare=True,
        ),
    ] = 0.0
    shock_rate_per_day: Annotated[
        float,
        Quantity(
            "Failures per day of one thing that nodes share, on top: a row's power, its coolant.",
            name="shock",
            flat="shock_rate",
            most=MOST_RATE,
            metavar="RATE",
            example="1e-3",
            rare=True,
        ),
    ] = 0.0
    shock_nodes: Annotated[
        int, Count("Nodes that share it.", most=MOST_CHIPS, needs=("shock_rate",), rare=True)
    ] = 32
    age_s: Annotated[
        float | None,
        Quantity(
            "Age of the nodes at the start; new ones fail more often (default: past that).", flat="node_age"
        ),
    ] = None
    enough_fraction: Annotated[
        float,
        Share(
            "Share of the time that spares must suffice.",
            flat="spares_enough",
            group=RATES,
            above=True,
            below=True,
        ),
    ] = 0.99

    def problems(self, model: Model | None = None) -> Iterator[ScenarioError]:
        del model
        for name, rate in (("job_failures", self.job_rate_per_day), ("shock_rate", self.shock_rate_per_day)):
            if 0.0 < rate < LEAST_RATE:
                least = fmt(LEAST_RATE, "per_day")
                yield ScenarioError(
                    f"{fmt(rate, 'per_day')} is less than {least}, once in 2.7 million years",
                    field=name,
                    hint=f"{least} or more, or 0 for never",
                )
