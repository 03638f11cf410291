"""Step tables whose parts are round numbers, and replicas to read them with."""

from __future__ import annotations

import msgspec
import numpy as np
from tests.inference.serving_case import replica as case

from datahall.inference.closed_form.steady_state import Curve
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_capacity import KvCapacity, kv_capacity
from datahall.inference.step.table import (
    GRID_PER_OCTAVE,
    StepTable,
)
from datahall.scenario.sections.wanted.promise import NO_LIMITS, Promise

replace = msgspec.structs.replace
AXIS = 2.0 ** (np.arange(60) / GRID_PER_OCTAVE) - 1.0


def limits(**said: float) -> Promise:
    """Latency limits of which only some are set."""
    return replace(NO_LIMITS, **said)


def linear(
    *,
    step_s: float = 1.0,
    token_s: float = 0.0,
    decode_s: float = 0.0,
    prefill_s: float = 0.0,
    past_s: float = 0.0,
    head_s: float = 0.0,
    host: tuple[float, float] = (0.0, 0.0),
    met_s: float = 0.0,
) -> StepTable:
    """Steps whose parts grow in proportion."""
    tokens, rows = np.arange(1025.0), np.arange(129.0)
    return StepTable(
        tokens_s=np.where(tokens > 0, step_s + token_s * tokens, 0.0),
        head_s=head_s * rows,
        decode_s=decode_s * np.outer(rows, AXIS),
        prefill_s=np.outer(AXIS, prefill_s + past_s * AXIS),
        host=np.array(host),
        num_verified=1,
        met_s=met_s * tokens,
    )


def small(**options: object) -> Replica:
    return case(**{"token_budget": 100, "max_sequences": 16, **options})


def cache_of(num_blocks: int) -> KvCapacity:
    return replace(kv_capacity(case()), num_blocks=num_blocks)


def flat(most: float = 4.0, rate: float = 2.0) -> Curve:
    """Up to `most` sequences in proportion to the rate, steps of a second."""
    n = np.linspace(0.1, most, 40)
    ones = np.ones_like(n)
    return Curve(
        decoding=n, step_s=ones, tpot_s=ones, tpot_high_s=2 * ones, ttft_s=3 * ones, ttft_high_s=5 * ones,
        rate_per_s=rate * n / most, within=n < 0.75 * most, limit="sequences", percentile=0.9, most=most,
        most_per_s=rate,
    )  # fmt: skip
