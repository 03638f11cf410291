"""A table of steps cut from a wider one is the one that pricing the replica itself gives, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
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
round_budgets = st.integers(10, 14).map(lambda power: 2**power)
budgets = round_budgets | st.integers(1024, 16_384)


def sized(replica: Replica, sequences: int, context: int, budget: int = 8192) -> Replica:
    engine = msgspec.structs.replace(replica.engine, max_sequences=sequences, token_budget=budget)
    return msgspec.structs.replace(replica, engine=engine, max_context=context)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(KINDS),
    powers,
    powers,
    st.integers(200, 40_000),
    st.integers(200, 40_000),
    budgets,
    budgets,
)
@example(
    KINDS[2], 256, 256, 8192, 8192, 1056, 4096
)  # 1056 tokens are no point of a table, 2112 are: those of both stages
def test_a_cut_table_is_the_table_itself(
    serve: Serve,
    kind: tuple[str, dict[str, object]],
    n: int,
    m: int,
    short: int,
    long: int,
    few: int,
    many: int,
) -> None:
    model, options = kind
    sequences, contexts, tokens = sorted((n, m)), sorted((short, long)), sorted((few, many))
    replica = sized(serve(model, **options), sequences[0], contexts[0], tokens[0])
    broad = price_steps(sized(replica, sequences[1], contexts[1], tokens[1]), max_context=contexts[1])
    found = narrowed(broad, replica, max_context=contexts[0])
    own = price_steps(replica, max_context=contexts[0])
    if found is None:  # timed at other points, which budgets of powers of two never are
        assert any(budget & (budget - 1) for budget in tokens)
        return
    for name, cut, priced in zip(own.table._fields, found.table, own.table, strict=True):
        assert np.shape(cut) == np.shape(priced), name
        assert np.array_equal(cut, priced), name
    assert (found.level, found.band, found.stack) == (own.level, own.band, own.stack)


@pytest.mark.parametrize(
    ("sequences", "context", "budget"),
    [(512, 8192, 8192), (256, 65536, 8192), (256, 8192, 16384), (256, 8192, 5000)],
)
def test_what_a_wide_table_does_not_hold_is_not_cut_from_it(
    serve: Serve, sequences: int, context: int, budget: int
) -> None:
    wide = sized(serve("llama-3.1-8b"), 256, 16384)
    asked = sized(wide, sequences, context, budget)
    assert narrowed(price_steps(wide), asked, max_context=context) is None
