"""From a fleet to the arrays of its simulation."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from datahall.events.queue import new_queue
from datahall.events.trace import new_trace
from datahall.inference.engine.adapters import first_token_s
from datahall.inference.engine.disaggregation import handoff_of
from datahall.inference.engine.replica import Speculation
from datahall.inference.engine.speculation import tokens_per_step
from datahall.inference.fleet.balancing import FIRST_REGION, list_members
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.memory.kv_capacity import KvCapacity, kv_capacity
from datahall.inference.memory.offload import host_bytes_per_s, lower_tiers, token_bytes
from datahall.inference.memory.runs import new_runs
from datahall.inference.simulation import histogram
from datahall.inference.simulation.state import (
    ACTIVE,
    ENDED,
    FLEET,
    LOOK,
    NONE,
    NUM_TIERS,
    OFF,
    POOL,
    POST,
    REPLICA,
    ROW,
    SLOT,
    TIER,
    Cache,
    Records,
    State,
    Tables,
)
from datahall.inference.simulation.watch import FIRST_S
from datahall.inference.step.price import price_steps, round_token_budget
from datahall.inference.step.table import GRID_PER_OCTAVE, StepTable, tokens_time
from datahall.scenario.words import BATCHING, ROLES, ROUTINGS
from datahall.workload.traffic.requests import Requests

NUM_SLOTS = 4096  # at first; more when requests pile up
NUM_RECORDS = 65_536  # rows that are handed over at a time
ONE_LENGTH = 0.01  # coefficient of variation, below which lengths are as good as one


def new_state(
    fleet: Fleet,
    tables: list[StepTable],
    *,
    caching: bool,
    record: bool,
    trace_steps: int,
    num_looks: int = 0,
    num_slots: int = NUM_SLOTS,
) -> State:
    """Empty replicas, all of them taking requests at time 0."""
    pools = np.zeros(len(fleet.pools), POOL)
    for row, pool, table in zip(pools, fleet.pools, tables, strict=True):
        fill_pool(row, pool)
        row["verified"] = table.num_verified
    replicas, most = new_replicas(fleet, pools), int((pools["sequences"] * pools["lanes"]).max())
    num_regions = len(fleet.distance_s)
    tiers = new_tiers(fleet, replicas["pool"])
    num_blocks = int(pools["blocks"][replicas["pool"]].sum() + tiers["blocks"].sum()) if caching else 0
    runs, chains = new_runs(num_blocks)
    state = State(
        fleet=np.zeros(1, FLEET),
        rows=np.zeros(0, ROW),
        slots=np.zeros(num_slots, SLOT),
        replicas=replicas,
        pools=pools,
        heap=np.zeros((replicas.size, 2 * most), np.int64),
        phases=np.zeros((replicas.size, int(pools["steps_per_block"].max())), np.int64),
        members=np.zeros((FIRST_REGION + num_regions, 1 + replicas.size), np.int64),
        distance_s=np.array(fleet.distance_s, np.float64),
        queue=new_queue(2 * num_slots + 4 * replicas.size + 2 * len(fleet.outages) + 64),
        posts=np.zeros(num_slots + 64, POST),
        histograms=np.zeros((5, histogram.NUM_BINS)),
        ended=np.empty(max(NUM_RECORDS, 4 * most) if record else 1, ENDED),  # each row is written whole
        looks=np.zeros(num_looks, LOOK),
        trace=new_trace(trace_steps),
        cache=Cache(runs, chains, tiers),
        keys=np.zeros(1, np.int64),
    )
    state.slots["free"] = np.arange(num_slots - 1, -1, -1)
    whole = state.fleet[0]
    whole["num_free_slots"], whole["held"], whole["caching"] = num_slots, NONE, caching
    whole["routing"], whole["spill"] = ROUTINGS.index(fleet.routing), fleet.num_spill
    whole["affinity_load"], whole["record"] = fleet.affinity_load_ratio, record
    whole["every_s"], whole["look_s"] = FIRST_S, FIRST_S if num_looks else np.inf
    list_members(state)
    return state


def fill_pool(row: np.void, pool: Pool) -> None:
    """One kind of replica; its data-parallel ranks share the work evenly."""
    replica, engine = pool.replica, pool.replica.engine
    if pool.table is None or not pool.num_blocks:
        found: KvCapacity | None = kv_capacity(replica)
    else:
        found = None
    per_step = tokens_per_step(replica.speculation)
    row["role"], row["lanes"], row["region"] = ROLES.index(pool.role), replica.dp, pool.region
    row["weight"] = pool.weight_ratio
    row["budget"], row["sequences"] = round_token_budget(replica), engine.max_sequences * replica.pp
    row["block_tokens"] = engine.block_tokens
    row["blocks"] = replica.dp * (pool.num_blocks or (found.num_blocks if found else 0))
    row["chunked"], row["mixed"] = engine.chunked_prefill, engine.mixed_steps
    row["whole"], row["caching"] = engine.whole_prompt_blocks, engine.prefix_caching
    row["batching"] = BATCHING.index(engine.batching)
    row["reserve"] = engine.whole_output_blocks or engine.batching != "continuous"
    row["swap"] = engine.preemption == "swap"
    row["max_context"] = replica.max_context or replica.model.max_context
    row["steps_per_block"] = max(1, round(engine.block_tokens / per_step))
    row["wait_s"], row["first_token_s"] = engine.wait_s, first_token_s(replica)
    row["tokens_per_step"] = per_step
    if replica.speculation is not None:
        row["excess_steps"], row["step_spread"] = renewal(replica.speculation, per_step)
    if row["swap"]:
        row["swap_token_s"] = token_bytes(replica) / host_bytes_per_s(replica)
    row["layer_share"] = 1.0 / replica.model.num_layers
    if pool.role == "prefill":
        moved = pool.handoff or handoff_of(replica)
        row["handoff_setup_s"], row["handoff_token_s"] = moved.setup_s, moved.token_s
        row["handoff_shown"] = moved.shown_fraction
    if found is not None and pool.num_blocks == 0:
        row["state_blocks"] = found.state_blocks
        if found.window_blocks:
            row["window_tokens"] = max(window for window, _ in found.window_blocks) + engine.block_tokens
            row["window_token_blocks"] = sum(each for _, each in found.window_blocks)


def renewal(speculation: Speculation, mean: float) -> tuple[float, float]:
    """What a count of steps has beyond tokens/mean, and its deviation for one token: see `speculated_steps`."""
    kept = np.arange(speculation.num_draft + 1)
    chance = speculation.acceptance**kept * (1.0 - speculation.acceptance)
    chance[-1] = speculation.acceptance ** kept[-1]
    square = float((chance * (kept + 1.0) ** 2).sum())
    return (square - mean) / (2.0 * mean * mean), float(np.sqrt(max(0.0, square - mean * mean) / mean**3))


def new_tiers(fleet: Fleet, pool_of: np.ndarray) -> Records:
    """The prefix cache of each replica, empty; what the chip has room for is what is free on it."""
    tiers = np.zeros(NUM_TIERS * pool_of.size, TIER)
    tiers["oldest"] = tiers["newest"] = tiers["lifting"] = NONE
    sizes = [lower_tiers(pool.replica) for pool in fleet.pools]
    for tier in range(1, NUM_TIERS):
        tiers["blocks"][tier::NUM_TIERS] = np.array([size[tier - 1].num_blocks for size in sizes])[pool_of]
        tiers["block_s"][tier::NUM_TIERS] = np.array([size[tier - 1].block_s for size in sizes])[pool_of]
    return tiers


def new_replicas(fleet: Fleet, pools: Records) -> Records:
    """One record for each replica that may ever be there."""
    rule, counts = fleet.autoscaling, [pool.count for pool in fleet.pools]
    if rule is not None:
        counts[0] = max(counts[0], rule.most)
    replicas = np.zeros(sum(counts), REPLICA)
    replicas["pool"] = np.repeat(np.arange(len(counts)), counts)
    replicas["region"] = pools["region"][replicas["pool"]]
    replicas["free"] = pools["blocks"][replicas["pool"]]
    for name in (
        "queue_head",
        "queue_tail",
        "run_head",
        "run_tail",
        "partial",
        "step_head",
        "token",
        "late",
    ):
        replicas[name] = NONE
    place = np.arange(replicas.size) - np.repeat(np.cumsum([0, *counts[:-1]]), counts)
    there = place < np.array([pool.count for pool in fleet.pools])[replicas["pool"]]
    replicas["status"] = np.where(there, ACTIVE, OFF)
    return replicas


def of_one_length(requests: Requests) -> bool:
    """Whether prompts and answers have one length each, or so nearly that a fleet does not soon forget its order."""
    return all(bool(one.std() <= ONE_LENGTH * one.mean()) for one in (requests.prompt, requests.output))


def uneven_contexts(requests: Requests, num_ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """How far the rank with the longest contexts lies above the mean of all, for one sequence per rank.

    Routers balance the number of requests, not their tokens.  A sequence is met with a chance in proportion to its
    output, anywhere between its prompt and its end; the mean of n of them spreads by 1/√n of one, and of k normal
    ranks the highest lies Φ⁻¹((k − 3/8)/(k + 1/4)) spreads above their mean.  Reference: Blom (1958).

    >>> one = Requests.of(np.zeros(2), np.array([500, 1500]), np.array([1, 1]))
    >>> uneven_contexts(one, np.array([1, 2])).round(2).tolist()
    [0.0, 0.29]
    """
    if not np.any(num_ranks > 1):
        return np.zeros(num_ranks.size)
    prompt, output = requests.prompt.astype(np.float64), np.maximum(requests.output, 1).astype(np.float64)
    mean = np.average(prompt + output / 2.0, weights=output)
    square = np.average(prompt**2 + prompt * output + output**2 / 3.0, weights=output)
    spread = np.sqrt(max(0.0, square / mean**2 - 1.0))
    places = [NormalDist().inv_cdf((k - 0.375) / (k + 0.25)) if k > 1 else 0.0 for k in num_ranks.tolist()]
    return np.asarray(spread * np.array(places), dtype=np.float64)


def step_tables(fleet: Fleet) -> list[StepTable]:
    """The table of each pool."""
    return [pool.table or price_steps(pool.replica).table for pool in fleet.pools]


def stack(tables: list[StepTable]) -> Tables:
    """Step tables of several pools in one array each; shorter axes go on as the reading of the table would."""
    most = max(table.tokens_s.size for table in tables)
    tokens = [[tokens_time(table, m) for m in range(table.tokens_s.size, most)] for table in tables]
    return Tables(
        _stacked([np.append(table.tokens_s, more) for table, more in zip(tables, tokens, strict=True)]),
        _stacked([_longer(table.head_s, max(one.head_s.size for one in tables)) for table in tables]),
        _stacked([_wider(table.decode_s, [one.decode_s for one in tables], False) for table in tables]),
        _stacked([_wider(table.prefill_s, [one.prefill_s for one in tables], True) for table in tables]),
        _stacked([table.host for table in tables]),
        _stacked([_longer(table.met_s, max(one.met_s.size for one in tables)) for table in tables]),
        _joined(tables),
        _stacked([table.empty_s for table in tables]),
    )


def _stacked(values: list[np.ndarray]) -> np.ndarray:
    """One array of all; of one alone it is that one, for nobody writes into a table."""
    return np.ascontiguousarray(values[0])[None] if len(values) == 1 else np.stack(values)


def _joined(tables: list[StepTable]) -> np.ndarray:
    """Decodes beside prompts; a table without them reads its decodes where another of the fleet has them."""
    if all(table.joined_s.size == 1 for table in tables):
        return _stacked([table.joined_s for table in tables])
    filled = [table.joined_s if table.joined_s.size > 1 else table.decode_s for table in tables]
    return _stacked([_wider(one, filled, False) for one in filled])


def _longer(values: np.ndarray, size: int) -> np.ndarray:
    if len(values) == size:
        return values
    return np.concatenate([values, np.repeat(values[-1:], size - len(values), axis=0)])


def _wider(values: np.ndarray, others: list[np.ndarray], both: bool) -> np.ndarray:
    rows, columns = max(one.shape[0] for one in others), max(one.shape[1] for one in others)
    wide = _extended(values, columns)
    return _extended(wide.T, rows).T if both else _longer(wide, rows)


def _extended(values: np.ndarray, size: int) -> np.ndarray:
    """Further columns of a logarithmic axis of tokens, on the line through the last two."""
    if values.shape[1] == size:
        return values
    axis = 2.0 ** (np.arange(size) / GRID_PER_OCTAVE) - 1.0
    last = values.shape[1] - 1
    slope = (values[:, last] - values[:, last - 1]) / (axis[last] - axis[last - 1])
    return np.concatenate(
        [values, values[:, last:] + slope[:, None] * (axis[last + 1 :] - axis[last])], axis=1
    )
