"""Run a published benchmark again in the event simulation, with its own way of sending requests."""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.basis import Basis
from datahall.events import stream
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.step.price import StepPrice, narrowed, price_steps
from datahall.validation.inference.figures import figures_of
from datahall.validation.inference.run import THROUGHPUT, TPOT, TTFT, Run, Traffic
from datahall.validation.inference.server import held_rate
from datahall.workload.traffic.requests import Requests

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]

SEED = 7
MOST_REQUESTS = 1000  # of a run, or four rounds of its users where those are more
LEAST_ROUNDS = 4
LEAST_CONTEXT = 16384  # tokens that a table reaches at least, so that rows of different lengths share it
OFFLINE_ROUNDS = 3  # fillings of the engine that an offline run is followed for
MIXED_ROUNDS = 5  # the same where lengths vary and the first part is not counted
LARGEST_OFFLINE = 6000
LONGEST_OVER_MEAN = 4.0  # of lengths that vary as those of a chat do


class Served(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of each request, in the order of the log."""

    ttft_s: Floats
    tpot_s: Floats
    num_requests: int
    level: Basis


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a replayed benchmark."""

    predicted: dict[str, float]  # seconds, or tokens per second
    level: Basis


class Priced(msgspec.Struct, frozen=True, kw_only=True):
    """What the simulation needs of a replica; computed once for all rows that share it."""

    price: StepPrice
    num_blocks: int


class Prices:
    """Step tables of the replicas seen last, each cut from the widest of its machine."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._known: OrderedDict[tuple[object, ...], Priced] = OrderedDict()
        self._wide: OrderedDict[tuple[object, ...], StepPrice] = OrderedDict()
        self._sizes: dict[tuple[object, ...], Sizes] = {}
        self.replayed: dict[tuple[object, ...], Replayed] = {}

    def foresee(self, replica: Replica) -> None:
        """A replica will be asked for: the table of its machine shall reach so far."""
        wanted = rounded(replica)
        key, sizes = machine_key(wanted), sizes_of(wanted)
        before = self._sizes.get(key, sizes)
        self._sizes[key] = Sizes(*(max(pair) for pair in zip(before, sizes, strict=True)))

    def of(self, replica: Replica) -> Priced:
        """The table and the blocks of a replica; sizes are rounded up so that rows share tables."""
        wider = rounded(replica)
        key = replica_key(wider)
        if key not in self._known:
            blocks = (
                replica.kv_blocks or kv_capacity(msgspec.structs.replace(replica, max_context=0)).num_blocks
            )
            self._known[key] = Priced(price=self._price(wider), num_blocks=blocks)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return self._known[key]

    def _price(self, replica: Replica) -> StepPrice:
        self.foresee(replica)
        key = machine_key(replica)
        if key in self._wide:
            cut = narrowed(self._wide[key], replica, max_context=replica.max_context)
            if cut is not None:
                return cut
        widest = of_sizes(replica, self._sizes[key])
        self._wide[key] = price_steps(widest, max_context=widest.max_context)
        if len(self._wide) > self._most:
            self._wide.popitem(last=False)
        cut = narrowed(self._wide[key], replica, max_context=replica.max_context)
        return cut or price_steps(replica, max_context=replica.max_context)


class Sizes(NamedTuple):
    """How far a table reaches."""

    token_budget: int
    sequences: int
    context: int


def sizes_of(replica: Replica) -> Sizes:
    """Those of a replica."""
    return Sizes(replica.engine.token_budget, replica.engine.max_sequences, replica.max_context)


def rounded(replica: Replica) -> Replica:
    """The replica with sizes that many share."""
    budget, sequences, context = sizes_of(replica)
    sizes = Sizes(_power(budget), _power(max(64, sequences)), _power(max(LEAST_CONTEXT, context)))
    return of_sizes(replica, sizes)


def of_sizes(replica: Replica, sizes: Sizes) -> Replica:
    """The replica with a table that reaches so far."""
    engine = msgspec.structs.replace(
        replica.engine, token_budget=sizes.token_budget, max_sequences=sizes.sequences
    )
    return msgspec.structs.replace(replica, engine=engine, max_context=sizes.context)


def machine_key(replica: Replica) -> tuple[object, ...]:
    """What the widest table of a replica depends on."""
    return replica_key(of_sizes(msgspec.structs.replace(replica, kv_blocks=0), Sizes(0, 0, 0)))


def replica_key(replica: Replica) -> tuple[object, ...]:
    """What a replica's table depends on."""
    return (
        replica.model.name, replica.chip.name, replica.engine, replica.precision, replica.tp, replica.pp, replica.dp,
        replica.ep, replica.max_context, replica.kv_blocks, replica.routing_skew, replica.block_scaled,
    )  # fmt: skip


def replay(run: Run, prices: Prices) -> Replayed:
    """Simulate a run and take its figures as its benchmark does: means over requests."""
    if run.traffic.kind != "closed" and run.num_replicas > 1:  # replicas share nothing: one is enough
        alone = replay(msgspec.structs.replace(run, num_replicas=1), prices)
        scaled = {THROUGHPUT: alone.predicted[THROUGHPUT] * run.num_replicas}
        return msgspec.structs.replace(alone, predicted=scaled)
    replica = sized(run.replica, run.traffic, run.num_replicas)
    at_once = msgspec.structs.replace(run, traffic=msgspec.structs.replace(run.traffic, unseen_tokens=0.0))
    key = (
        *replica_key(replica),
        run.num_replicas,
        at_once.traffic,
        run.pools is None or run.row.text("notes"),
    )
    if key not in prices.replayed:
        prices.replayed[key] = _replayed(at_once, replica, prices)
    return _seen(prices.replayed[key], run.traffic.unseen_tokens)


def _seen(found: Replayed, unseen_tokens: float) -> Replayed:
    """As a client sees it, so many decode steps late: the server does the same."""
    if not unseen_tokens:
        return found
    late_s = unseen_tokens * found.predicted[TPOT]
    return msgspec.structs.replace(found, predicted=found.predicted | {TTFT: found.predicted[TTFT] + late_s})


def _replayed(run: Run, replica: Replica, prices: Prices) -> Replayed:
    priced, traffic = prices.of(replica), run.traffic
    requests = requests_of(traffic, replica, run.num_replicas, priced.num_blocks)
    pool = Pool(replica=replica, count=run.num_replicas, table=priced.price.table)
    fleet = Fleet(pools=(pool,)) if run.pools is None else _pools(run, pool, prices)
    users = traffic.users if traffic.kind == "closed" else 0
    done = simulate_serving(fleet, requests, users=users, record=True, seed=SEED)
    assert done.records is not None
    figures = figures_of(traffic, done.records)
    if traffic.limits is not None:
        most_per_s = figures[THROUGHPUT] / traffic.output_tokens
        figures = {
            THROUGHPUT: held_rate(pool, requests, most_per_s, traffic.limits, SEED) * traffic.output_tokens
        }
    return Replayed(predicted=figures, level=priced.price.level)


def replay_log(replica: Replica, requests: Requests, hits: Ints) -> Served:
    """Simulate a log with its own arrivals and prefix hits."""
    priced = Prices().of(replica)
    pool = Pool(replica=replica, table=priced.price.table)
    done = simulate_serving(Fleet(pools=(pool,)), requests, record=True, cached_tokens=hits, seed=SEED)
    records = done.records
    assert records is not None
    ttft_s, tpot_s = np.full(len(requests), np.nan), np.full(len(requests), np.nan)
    ttft_s[records.row], tpot_s[records.row] = records.ttft_s, records.tpot_s
    return Served(
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        num_requests=len(requests),
        level=priced.price.level,
    )


def sized(replica: Replica, traffic: Traffic, num_replicas: int) -> Replica:
    """The replica as a run needs it: no more places than it has users, a context that its longest request fits."""
    most = replica.engine.max_sequences
    if traffic.kind == "closed":
        most = min(most, -(-traffic.users // (num_replicas * replica.dp)) + 1)
    longest = traffic.prompt_tokens + traffic.output_tokens + 1
    if traffic.spread_ratio:
        longest *= LONGEST_OVER_MEAN
    engine = msgspec.structs.replace(replica.engine, max_sequences=most)
    return msgspec.structs.replace(replica, engine=engine, max_context=int(longest))


def _power(size: int) -> int:
    return 1 << (size - 1).bit_length()


def requests_of(traffic: Traffic, replica: Replica, num_replicas: int, num_blocks: int) -> Requests:
    """The requests of a run; seeded, so that a row always gives the same figures."""
    ranks = num_replicas * replica.dp
    if traffic.kind == "closed":
        num = traffic.num_requests or min(
            traffic.users * traffic.rounds, max(LEAST_ROUNDS * traffic.users, MOST_REQUESTS)
        )
    else:
        held = num_blocks * replica.engine.block_tokens / (traffic.prompt_tokens + traffic.output_tokens)
        at_once = max(1.0, min(held, replica.engine.max_sequences)) * ranks
        rounds = MIXED_ROUNDS if traffic.spread_ratio else OFFLINE_ROUNDS
        num = traffic.num_requests or int(min(LARGEST_OFFLINE, max(256, rounds * at_once)))
    prompt, output = (
        _lengths(mean, traffic, _drawn(name, _power(num))[:num])
        for name, mean in (("prompt", traffic.prompt_tokens), ("output", traffic.output_tokens))
    )
    return Requests.of(np.zeros(num), prompt, output)


@cache
def _drawn(name: str, num: int) -> Floats:
    """Numbers in [0, 1); a longer draw begins with a shorter one."""
    return stream(SEED, name).random(num)


def _lengths(longest: float, traffic: Traffic, drawn: Floats) -> Ints:
    if traffic.spread_ratio:
        law = np.minimum((-np.log1p(-drawn)) ** traffic.spread_ratio, LONGEST_OVER_MEAN - 0.5)
        scaled: Ints = np.maximum(1, law / law.mean() * longest).astype(np.int64)
        return scaled
    share = traffic.shortest_fraction + (1.0 - traffic.shortest_fraction) * drawn
    found: Ints = np.maximum(1, np.round(longest * share)).astype(np.int64)
    return found


def _pools(run: Run, pool: Pool, prices: Prices) -> Fleet:
    assert run.pools is not None
    prefill = sized(run.pools.prefill, run.traffic, run.pools.num_prefill)
    priced = prices.of(prefill)
    first = Pool(
        replica=prefill, count=run.pools.num_prefill, role="prefill", table=priced.price.table
    )  # fmt: skip
    second = msgspec.structs.replace(pool, role="decode")
    return Fleet(pools=(first, second))
