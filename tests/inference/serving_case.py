"""A small fleet with a plain step table, for the tests of the serving simulation."""

from __future__ import annotations

from functools import cache

import msgspec
import numpy as np

from datahall.catalog import load
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.step.table import GRID_PER_OCTAVE, StepTable
from datahall.workload.traffic.requests import Requests


@cache
def table(num_verified: int = 1) -> StepTable:
    """About an 8B model on a large chip."""
    tokens, sequences = np.arange(8193), np.arange(257)
    axis = 2.0 ** (np.arange(64) / GRID_PER_OCTAVE) - 1.0
    return StepTable(
        tokens_s=np.where(tokens > 0, 7e-3 + tokens * 2.2e-5, 0.0),
        head_s=1e-4 + sequences * 1e-7,
        decode_s=sequences[:, None] * (axis[None, :] * 4.7e-8 + 1e-6),
        prefill_s=(2.0 * axis[:, None] * axis[None, :] + axis[:, None] ** 2) * 6.5e-10,
        host=np.array([1e-4, 1e-6]),
        num_verified=num_verified,
    )


def replica(**options: object) -> Replica:
    """A Llama 8B on an H100 under an engine with some options."""
    found = msgspec.structs.replace(engine("vllm"), first_token_s=0.0, prefix_caching=False, **options)
    shelf = load()
    return Replica(model=shelf.model("llama-3.1-8b"), chip=shelf.chip("h100-sxm"), engine=found)


def fleet(count: int = 1, num_blocks: int = 27_000, routing: str = "round-robin", **options: object) -> Fleet:
    return Fleet(
        pools=(Pool(replica=replica(**options), count=count, table=table(), num_blocks=num_blocks),),
        routing=routing,  # type: ignore[arg-type]
    )


def poisson(
    num: int, rate_per_s: float, prompt: int = 512, output: int = 128, seed: int = 1, spread: float = 0.0
) -> Requests:
    """Independent requests; with a spread, lengths are uniform around their means."""
    draw = np.random.default_rng(seed)
    wide = np.array([1.0 - spread, 1.0 + spread])
    return Requests.of(
        np.cumsum(draw.exponential(1.0 / rate_per_s, num)),
        np.maximum(1, draw.uniform(*(prompt * wide), num)).astype(np.int64),
        np.maximum(1, draw.uniform(*(output * wide), num)).astype(np.int64),
    )
