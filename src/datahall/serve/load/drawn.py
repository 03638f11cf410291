"""The requests of a load, drawn as a simulation draws them."""

from __future__ import annotations

from math import inf

import msgspec

from datahall.errors import ScenarioError
from datahall.scenario.requests import requests_of
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.traffic import REQUESTS_PER_USER, Traffic
from datahall.serve.load.drive import Drive
from datahall.workload.traffic.requests import join
from datahall.workload.traffic.traffic import generate

USUAL_S = 30.0  # that requests come at a rate, where nobody says
MOST_REQUESTS = 1_000_000  # whose samples one process keeps


def drawn(scenario: Scenario) -> Drive:
    """What is sent, as the scenario describes it."""
    said = scenario.one(Traffic)
    if said.requests is None and said.duration_s is None:
        number = said.users * REQUESTS_PER_USER if said.users else None
        said = msgspec.structs.replace(said, requests=number, duration_s=None if number else USUAL_S)
    if (said.requests or 0) > MOST_REQUESTS:
        raise ScenarioError(
            f"{said.requests:,} requests are more than one process sends",
            field="requests",
            hint=f"up to {MOST_REQUESTS:,}",
        )
    traffic = requests_of(said, 0)
    return Drive(
        requests=join(generate(traffic, scenario.root.seed)),
        users=said.users or 0,
        until_s=said.duration_s or inf,
        seed=scenario.root.seed,
    )
