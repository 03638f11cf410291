"""A table of steps cut from a wider one is the one that pricing the replica itself gives, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datahall.inference.engine.replica import Replica
from datahall.inference.step.price import narrowed, price_steps

Serve = Callable[..., Replica]

KINDS = (
    ("llama-3.1-8b", {}),
    ("llama-3.1-70b", {"tp": 4}),
    ("llama-3.1-70b", {"tp": 2, "pp": 2}),
    ("deepseek-v3", {"dp": 8, "ep": 8, "precision": "fp8", "chip": "h200-sxm"}),
    ("nemotron-h-8b", {}),
)
powers = st.integers(6, 10).map(lambda power: 2**power)


def sized(replica: Replica, sequences: int, context: int) -> Replica:
    engine = msgspec.structs.replace(replica.engine, max_sequences=sequences)
    return msgspec.structs.replace(replica, engine=engine, max_context=context)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(KINDS), powers, powers, st.integers(200, 40_000), st.integers(200, 40_000))
def test_a_cut_table_is_the_table_itself(
    serve: Serve, kind: tuple[str, dict[str, object]], n: int, m: int, short: int, long: int
) -> None:
    model, options = kind
    sequences, contexts = sorted((n, m)), sorted((short, long))
    replica = sized(serve(model, **options), sequences[0], contexts[0])
    broad = price_steps(sized(replica, sequences[1], contexts[1]), max_context=contexts[1])
    found = narrowed(broad, replica, max_context=contexts[0])
    own = price_steps(replica, max_context=contexts[0])
    assert found is not None
    for name, cut, priced in zip(own.table._fields, found.table, own.table, strict=True):
        assert np.shape(cut) == np.shape(priced), name
        assert np.array_equal(cut, priced), name
    assert (found.level, found.band, found.stack) == (own.level, own.band, own.stack)


@pytest.mark.parametrize(
    ("sequences", "context", "budget"), [(512, 8192, 8192), (256, 65536, 8192), (256, 8192, 4096)]
)
def test_what_a_wide_table_does_not_hold_is_not_cut_from_it(
    serve: Serve, sequences: int, context: int, budget: int
) -> None:
    wide = sized(serve("llama-3.1-8b"), 256, 16384)
    wide = msgspec.structs.replace(wide, engine=msgspec.structs.replace(wide.engine, token_budget=8192))
    asked = sized(wide, sequences, context)
    asked = msgspec.structs.replace(asked, engine=msgspec.structs.replace(asked.engine, token_budget=budget))
    assert narrowed(price_steps(wide), asked, max_context=context) is None
