"""The same requests on the simulated service that a scenario describes, request by request beside what was measured."""

from __future__ import annotations

from math import inf

import numpy as np

from datahall.inference.fleet.build import fleet_of
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.simulation.simulate import simulate_serving
from datahall.scenario.scenario import Attempts, Scenario
from datahall.serve.load.drive import Drive
from datahall.serve.load.measured import Measured


def simulated_fleet(scenario: Scenario) -> Fleet:
    """The service to compare with; what is wrong with it is said before anything is sent."""
    attempts = Attempts(scenario)
    fleet = fleet_of(scenario, attempts, ())
    attempts.finish()
    assert fleet is not None
    return fleet


def simulated(fleet: Fleet, what: Drive) -> Measured:
    """What the simulation says of the requests that were sent."""
    run = simulate_serving(
        fleet,
        what.requests,
        users=what.users,
        users_until_s=what.until_s if what.users else inf,
        record=True,
    )
    told = run.records
    assert told is not None
    several = told.output > 1
    return Measured(
        duration_s=float(told.end_s.max(initial=0.0)),
        num_failed=run.num_rejected,
        errors={},
        row=told.row,
        ttft_s=told.ttft_s,
        tpot_s=told.tpot_s[several],
        itl_s=np.zeros(0),
        e2e_s=told.e2e_s,
        late_s=np.zeros(0),
        prompt_tokens=int(told.prompt.sum()),
        output_tokens=int(told.output.sum()),
    )
