"""A replica that keeps no keys and values: each token of an answer computes the whole sequence before it again.

    T(n) = tokens(n · c) + n · attention(c tokens of a prompt) + head(n)        c: tokens of a sequence, on average

A round takes every sequence once; its passes are linear in their tokens, so that it does not matter how many share one.
The weights must fit, and what is left of the memory is not asked for.
"""

from __future__ import annotations

from math import ceil

import msgspec
import numpy as np

from datahall.inference.closed_form.capacity import Held, held_by
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.replica import Replica
from datahall.inference.memory.kv_capacity import KvCapacity, kv_capacity
from datahall.inference.memory.kv_pool import divide_memory
from datahall.inference.step.column import prefill_times
from datahall.inference.step.price import StepPrice, price_steps
from datahall.inference.step.table import NOT_JOINED
from datahall.scenario.sections.wanted.promise import Promise

UNBOUND = 2**40  # blocks, and tokens of a round


def held_uncached(replica: Replica, load: Load, slo: Promise) -> Held:
    """The most that it holds; an `InfeasibleError` where even one request breaks a limit, or weights do not fit."""
    alone = msgspec.structs.replace(load, cached=0.0, tokens_per_step=1.0, verified=load.prompt + load.aged)
    engine = msgspec.structs.replace(replica.engine, token_budget=UNBOUND)
    rounds = msgspec.structs.replace(replica, engine=engine, speculation=None)
    price = _price(msgspec.structs.replace(replica, speculation=None), alone.verified)
    return held_by(rounds, alone, slo, price, _room(replica))


def _price(replica: Replica, context: float) -> StepPrice:
    """The table of its steps, in which a sequence decodes as long as a prompt of its length takes, and never less."""
    longest = max(replica.engine.token_budget, ceil(2.0 * context))
    price = price_steps(replica, max_tokens=longest)
    table = price.table
    once_s = float(prefill_times(table, np.array([context]), np.zeros(1))[0])
    num_sequences, num_contexts = table.decode_s.shape
    again_s = np.repeat(once_s * np.maximum(np.arange(num_sequences), 1)[:, None], num_contexts, axis=1)
    tokens_s = table.tokens_s[np.maximum(np.arange(table.tokens_s.size), round(context))]
    again = table._replace(tokens_s=tokens_s, decode_s=again_s, joined_s=NOT_JOINED)
    return msgspec.structs.replace(price, table=again)


def _room(replica: Replica) -> KvCapacity:
    """Memory without a cache: no number of sequences is too many, if there is room for weights and one pass."""
    found = divide_memory(replica)
    if found.pool_bytes <= 0:
        return kv_capacity(replica)  # which refuses it, and says what would help
    return msgspec.structs.replace(found, num_blocks=UNBOUND)
