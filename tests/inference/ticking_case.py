"""Fleets whose every step takes a whole second, and what their runs have written down."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from tests.inference.serving_case import replica

from datahall.inference.engine.disaggregation import Handoff
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.simulation.run import Records, ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.step.table import GRID_PER_OCTAVE, StepTable
from datahall.workload.traffic.requests import Requests

AXIS = 2.0 ** (np.arange(40) / GRID_PER_OCTAVE) - 1.0


def ticking(
    *,
    step_s: float = 1.0,
    token_s: float = 0.0,
    decode_s: float = 0.0,
    prefill_s: float = 0.0,
    head_s: float = 0.0,
    host: tuple[float, float] = (0.0, 0.0),
    verified: int = 1,
) -> StepTable:
    """Steps of one second, and more for each token, each context token of a decode, each token of a chunk, each row."""
    tokens, rows = np.arange(257.0), np.arange(65.0)
    return StepTable(
        tokens_s=np.where(tokens > 0, step_s + token_s * tokens, 0.0),
        head_s=head_s * rows,
        decode_s=decode_s * np.outer(rows, AXIS),
        prefill_s=prefill_s * np.outer(AXIS, np.ones_like(AXIS)),
        host=np.array(host),
        num_verified=verified,
    )


def one_pool(
    count: int = 1,
    *,
    num_blocks: int = 1000,
    table: StepTable | None = None,
    of: Replica | None = None,
    role: str = "both",
    region: int = 0,
    handoff: Handoff | None = None,
    **options: object,
) -> Pool:
    given = {"token_budget": 64, "max_sequences": 8, **options}
    return Pool(
        replica=of or replica(**given),
        count=count,
        role=role,  # type: ignore[arg-type]
        region=region,
        table=table or ticking(),
        num_blocks=num_blocks,
        handoff=handoff,
    )


def rows(*each: tuple[float, int, int], **columns: list[int]) -> Requests:
    """Requests by (arrival, prompt, output)."""
    arrival, prompt, output = (np.array(column) for column in zip(*each, strict=True))
    found = Requests.of(arrival.astype(np.float64), prompt, output)
    return msgspec.structs.replace(found, **{name: np.array(column) for name, column in columns.items()})


def simulated(*pools: Pool, requests: Requests, max_leap: int = 1 << 40, **options: Any) -> ServingRun:
    run_options = {name: options.pop(name) for name in list(options) if name not in Fleet.__struct_fields__}
    served = Fleet(pools=pools, **{"routing": "round-robin", **options})
    return simulate_serving(served, requests, record=True, compiled=False, max_leap=max_leap, **run_options)


def times(run: ServingRun) -> list[tuple[float, float, float]]:
    """When each request was scheduled, had its first token and its last."""
    assert run.records is not None
    columns = (run.records.scheduled_s, run.records.first_s, run.records.end_s)
    return [tuple(round(float(value), 9) for value in row) for row in zip(*columns, strict=True)]  # type: ignore[misc]


def records(run: ServingRun) -> Records:
    assert run.records is not None
    return run.records
