"""A fleet under traffic, from the few things a person says: what is played for `simulate serve`."""

from __future__ import annotations

import re
from math import isfinite

import msgspec

from datahall.answers.bounds import find_model, opened, whole
from datahall.answers.serving.plan import positive, share_of
from datahall.answers.serving.words import MOST_DRAFTED, adapters_from, load_of
from datahall.catalog import Catalog
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError
from datahall.inference.closed_form.steady_state import State, at_concurrency, at_rate, curve
from datahall.inference.engine.checkpoint import block_scaled
from datahall.inference.engine.engine import engine_on
from datahall.inference.engine.replica import Replica, Speculation
from datahall.inference.engine.slo import Slo
from datahall.inference.fleet.autoscale import Autoscaling
from datahall.inference.fleet.fleet import Fleet, Pool, Role, Routing
from datahall.inference.memory.kv_capacity import kv_capacity
from datahall.inference.memory.offload import drive_bytes_per_s
from datahall.inference.scenario import WARMUP, expected_s
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.step.price import StepPrice, price_steps
from datahall.workload.precision import Precision
from datahall.workload.traffic.options import traffic_from
from datahall.workload.traffic.traffic import Traffic, generate

TRACED_S = 30.0  # of the run that a timeline shows
ZEROS = ("0", "0.0")


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked and what came of it."""

    fleet: Fleet
    traffic: Traffic
    slo: Slo
    run: ServingRun
    precision: str
    price: StepPrice
    steady: State | None  # the closed form, where it says something
    seed: int
    precisions: tuple[str, ...] = ()  # of each pool; none: all have the one

    @property
    def replica(self) -> Replica:
        return self.fleet.pools[-1].replica


def simulated(
    model: str,
    *,
    chip: str = "h100-sxm",
    tp: str | int = 1,
    pp: str | int = 1,
    dp: str | int = 1,
    ep: str | int = 1,
    replicas: str | int = 1,
    disaggregated: str = "",
    rate: str | float | None = None,
    users: str | int | None = None,
    trace: str = "",
    traffic: str = "",
    isl: str | int | None = None,
    osl: str | int | None = None,
    spread: str | float | None = None,
    burstiness: str | float | None = None,
    turns: str | float | None = None,
    think: str | float | None = None,
    system: str | int | None = None,
    requests: str | int | None = None,
    duration: str | float | None = None,
    speed: str | float | None = None,
    sort: bool = False,
    ttft: str | float = "1s",
    tpot: str | float = "50ms",
    precision: str = "bf16",
    engine: str = "vllm",
    routing: str = "least-outstanding",
    draft: str = "",
    num_draft: str | int = 3,
    acceptance: str | float = "50 %",
    autoscale: str = "",
    cold_start: str | float = "2min",
    seed: int = 0,
    nic: str | float | None = None,
    adapters: str | int | None = None,
    adapter_rank: str | int = 16,
    resident_adapters: str | int | None = None,
    host_cache: str | float | None = None,
    drive_cache: str | float | None = None,
    drive_rate: str | float | None = None,
    catalog: Catalog | None = None,
) -> Service:
    """Play the traffic on the fleet that was asked for."""
    shelf = opened(catalog)
    known = find_model(model, shelf)
    formats = Precision.named(precision)
    drafted = (
        Speculation(
            num_draft=whole("num-draft", num_draft, at_most=MOST_DRAFTED),
            acceptance=share_of("acceptance", acceptance),
            draft=draft,
        )
        if draft
        else None
    )

    _check_split(known, whole("pp", pp), whole("ep", ep))

    def replica_on(part: Chip, degree: int) -> Replica:
        return Replica(
            model=known, chip=part, engine=engine_on(engine, part), precision=formats, tp=degree,
            pp=whole("pp", pp), dp=whole("dp", dp), ep=whole("ep", ep), speculation=drafted,
            block_scaled=block_scaled(known, formats.weights),
            nic_bytes_per_s=positive("nic", nic, "bytes_per_s") if nic else 0.0,
            adapters=adapters_from(adapters, adapter_rank, resident_adapters),
            host_cache_bytes=positive("host-cache", host_cache or 0.0, "bytes", zero=True),
            drive_cache_bytes=positive("drive-cache", drive_cache or 0.0, "bytes", zero=True),
            drive_bytes_per_s=positive("drive-rate", drive_rate, "bytes_per_s")
            if drive_rate
            else drive_bytes_per_s(part, shelf.servers()),
        )  # fmt: skip

    if disaggregated:
        pools = tuple(
            Pool(replica=replica_on(shelf.chip(name or chip), whole("tp", tp)), count=count, role=role)
            for role, count, name in pools_of(disaggregated)
        )
    else:
        most = _replicas(replicas)
        pools = (Pool(replica=replica_on(shelf.chip(chip), whole("tp", tp)), count=most),)
    fleet = Fleet(
        pools=pools,
        routing=_routing(routing),
        autoscaling=_autoscaling(autoscale, cold_start),
    )
    coming = traffic_from(
        rate=rate, users=users, trace=trace, preset_name=traffic, isl=isl, osl=osl, spread=spread,
        burstiness=burstiness, duration=duration, num_requests=requests, turns=turns, think=think, system=system,
        speed=speed, sort=sort, max_context=0 if trace else known.max_context,
    )  # fmt: skip
    slo = Slo(ttft_s=positive("ttft", ttft, "s"), tpot_s=positive("tpot", tpot, "s"))
    price = price_steps(fleet.pools[-1].replica)
    steady = closed_form(fleet, coming, price)
    run = simulate_serving(
        fleet,
        generate(coming, seed),
        users=coming.users.num if coming.users else 0,
        slo=slo,
        seed=seed,
        warmup_s=max(WARMUP * expected_s(coming), _first_rush(coming, steady)),
        trace_s=TRACED_S,
    )
    return Service(
        fleet=fleet,
        traffic=coming,
        slo=slo,
        run=run,
        precision=precision,
        price=price,
        steady=steady,
        seed=seed,
    )


def _first_rush(traffic: Traffic, steady: State | None) -> float:
    """The stay of a user's first request, when all come at once; it is played but not measured [s]."""
    if traffic.users is None or traffic.users.think.mean_s > 0 or steady is None:
        return 0.0
    return steady.ttft_s + steady.tpot_s * load_of(traffic).output


def _check_split(model: Model, pp: int, ep: int) -> None:
    """What no replica of a model can be cut into."""
    if pp > model.num_layers:
        raise ScenarioError(
            f"{pp:,} stages for the {model.num_layers} layers of {model.name}",
            where="--pp",
            hint=f"at most --pp {model.num_layers}",
        )
    if ep > 1 and model.moe is None:
        raise ScenarioError(
            f"{model.name} has no experts to spread over {ep:,} chips",
            where="--ep",
            hint="leave --ep out; --tp splits its layers",
        )


def pools_of(text: str) -> list[tuple[Role, int, str]]:
    """Read "prefill=4xh200,decode=8xh200": replicas of each role, and the chip they stand on.

    >>> pools_of("prefill=4xh200,decode=8")
    [('prefill', 4, 'h200'), ('decode', 8, '')]
    """
    pools: list[tuple[Role, int, str]] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(prefill|decode)\s*=\s*(\d+)(?:\s*[x×]\s*([\w.-]+))?\s*", part)
        if found is None or int(found[2]) < 1:
            raise ScenarioError(
                f'"{part.strip()}" is not a pool',
                where="--disaggregated",
                hint="prefill=4xh200,decode=8xh200",
            )
        role: Role = "prefill" if found[1] == "prefill" else "decode"
        pools.append((role, int(found[2]), found[3] or ""))
    if {role for role, _, _ in pools} != {"prefill", "decode"}:
        raise ScenarioError(
            "prefill and decode pools come together",
            where="--disaggregated",
            hint="prefill=4xh200,decode=8xh200",
        )
    return sorted(pools, key=lambda pool: pool[0] != "prefill")


def _replicas(replicas: str | int) -> int:
    return whole("replicas", replicas, at_most=100_000)


def _routing(name: str) -> Routing:
    return name  # type: ignore[return-value]  # the fleet checks it, and names the nearest


def _autoscaling(text: str, cold_start: str | float) -> Autoscaling | None:
    """Read "1..16" or "0..8:24": the least and the most replicas, and requests in the system for each."""
    if not text:
        return None
    found = re.fullmatch(r"(\d+)\.\.(\d+)(?::(\d+(?:\.\d+)?))?", text.strip())
    if found is None or not 0 <= int(found[1]) <= int(found[2]) or int(found[2]) < 1 or found[3] in ZEROS:
        raise ScenarioError(
            f'"{text}" is not a range of replicas', where="--autoscale", hint="--autoscale 1..16, or 0..8:24"
        )
    rule = Autoscaling(
        least=int(found[1]),
        most=int(found[2]),
        cold_start_s=positive("cold-start", cold_start, "s", zero=True),
    )
    return msgspec.structs.replace(rule, target=float(found[3])) if found[3] else rule


def closed_form(fleet: Fleet, traffic: Traffic, price: StepPrice) -> State | None:
    """The closed form of the same question: equal replicas, requests that share nothing, no trace."""
    if len(fleet.pools) > 1 or fleet.autoscaling or traffic.trace or traffic.conversation.num_turns > 1:
        return None
    pool = fleet.pools[0]
    if pool.replica.engine.batching != "continuous":
        return None
    load = msgspec.structs.replace(
        load_of(traffic), tokens_per_step=price.tokens_per_step, verified=float(price.table.num_verified)
    )
    found = curve(price.table, pool.replica, load, kv_capacity(pool.replica))
    ranks = pool.count * pool.replica.dp
    if traffic.users is not None:
        return at_concurrency(found, traffic.users.num / ranks, load, think_s=traffic.users.think.mean_s)
    if traffic.arrivals is None or not isfinite(traffic.arrivals.rate_per_s):
        return None
    return at_rate(found, traffic.arrivals.rate_per_s / ranks)
