"""What an engine has, taken away: batching, chunks of prompts, graphs, pages of the cache, the cache itself."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.replica import Replica
from datahall.inference.ladder.techniques import Setting, with_replica
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.step.price import price_steps
from datahall.inference.step.table import decode_step_time


def one_by_one(setting: Setting) -> Setting:
    """No batching at all: what the gain of batching is measured against."""
    return with_engine(setting, max_sequences=1)


def unchunked(setting: Setting) -> Setting:
    """Whole prompts in steps of their own, while decodes wait."""
    return with_engine(setting, chunked_prefill=False, mixed_steps=False)


def launched(setting: Setting) -> Setting:
    """Every kernel launched by the host: no graph is captured."""
    return with_engine(setting, graphs=False)


def graphs_speed_up(setting: Setting, num_sequences: int) -> float:
    """How many times faster a batch of so many sequences decodes where a graph starts its kernels."""
    replayed, started = (price_steps(one.replica).table for one in (setting, launched(setting)))
    context = setting.load.prompt
    return decode_step_time(started, num_sequences, context) / decode_step_time(
        replayed, num_sequences, context
    )


def contiguous(setting: Setting) -> Setting:
    """A cache without pages: each sequence has the room of the longest, from its first token to its last."""
    most = min(setting.replica.engine.max_sequences, reserved(setting.replica))
    return with_engine(setting, max_sequences=most)


def recomputed(setting: Setting) -> Setting:
    """No cache at all: every token of an answer computes all before it."""
    return msgspec.structs.replace(setting, recomputes=True)


def with_engine(setting: Setting, **options: object) -> Setting:
    """The same with other options of the engine."""
    return with_replica(setting, engine=msgspec.structs.replace(setting.replica.engine, **options))


def longest_of(replica: Replica) -> int:
    """Tokens of the longest sequence, as asked or as the model takes."""
    return replica.max_context or replica.model.max_context


def reserved(replica: Replica) -> int:
    """Sequences of a rank that have room for the longest each."""
    longest = longest_of(replica)
    found = kv_capacity(msgspec.structs.replace(replica, max_context=longest))
    return found.num_sequences(longest)


PAGES = "in pages"


class Places(NamedTuple):
    """A way to divide the cache of a rank: how many sequences of the load have a place, and how much they fill."""

    way: str
    num_sequences: float
    used_fraction: float  # of what is set aside for them


def places_of(replica: Replica, load: Load) -> tuple[Places, ...]:
    """The same cache in pages, reserved for each answer as long as it will be, and for the longest that may come.

    Of an answer half is there on average, of its last page too.  Nothing of models whose layers keep a window or a
    state, which set aside what they fill.
    """
    capacity, tokens = kv_capacity(replica), load.prompt + load.aged
    if not capacity.grows or capacity.window_blocks or capacity.state_blocks:
        return ()
    sizes = {
        PAGES: tokens + (capacity.block_tokens - 1) / 2.0,
        "as long as it will be": load.prompt + load.longest,
        "as long as the longest": float(longest_of(replica)),
    }
    return tuple(
        Places(way, capacity.num_blocks / capacity.blocks(size), tokens / size)
        for way, size in sizes.items()
        if size >= tokens
    )
