"""A scenario of a service: its fleet, who asks what from where, what stands in front, and what fails when."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite
from pathlib import Path
from typing import cast, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog import Catalog, load
from datahall.catalog import document as documents
from datahall.catalog.document import Document
from datahall.catalog.entries.model import Model
from datahall.errors import DocumentError, InfeasibleError
from datahall.events import stream
from datahall.inference.engine.slo import Slo
from datahall.inference.fleet.fleet import Fleet, Pool, Routing
from datahall.inference.fleet.merged_traffic import merge, with_priority
from datahall.inference.fleet.response_cache import ResponseCache, answer_times, draw_hits
from datahall.inference.scenario_cache import read_cache
from datahall.inference.scenario_file import Rule, ServingReader, number, whole
from datahall.inference.scenario_fleet import read_autoscaling, read_outages, read_pools
from datahall.inference.scenario_regions import Regions, read_regions
from datahall.inference.scenario_traffic import TRAFFIC, read_traffic
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.workload.traffic.requests import Requests
from datahall.workload.traffic.traffic import Traffic, generate

Ints = NDArray[np.int64]

WARMUP = 0.1  # share of the expected run that is played but not measured

ROOT = {
    "version": Rule("count"),
    "kind": Rule("text", "serving", ("serving",)),
    "name": Rule("text", ""),
    "model": Rule("text", "", required=True),
    "routing": Rule("text", "least-outstanding", get_args(Routing)),
    "affinity_load": Rule("ratio", 1.25, above=True),
    "spill": Rule("count", 64.0, least=1),
    "seed": Rule("count", 0.0),
    "warmup": Rule("s"),
    "until": Rule("s", above=True),
}
TABLES = ("pool", "traffic", "region", "slo", "autoscaling", "outage", "cache")
SLO = {"ttft": Rule("s", 1.0, above=True), "tpot": Rule("s", 0.05, above=True)}


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of one kind, as urgent as each other."""

    traffic: Traffic
    region_fractions: tuple[float, ...] = (1.0,)  # of its sessions that come from each region
    priority: int = 0  # lower goes first


class ServingScenario(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run needs."""

    name: str
    path: str
    model: Model
    fleet: Fleet
    precisions: tuple[str, ...]  # of each pool, by name
    streams: tuple[Stream, ...]
    regions: tuple[str, ...] = ()
    slo: Slo = Slo(ttft_s=1.0, tpot_s=0.05)
    cache: ResponseCache | None = None
    seed: int = 0
    warmup_s: float = 0.0
    until_s: float = inf


class ServingOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that was played; columns are over requests, in the order of `run.records.row`."""

    scenario: ServingScenario
    run: ServingRun
    stream: Ints
    region: Ints
    tier: NDArray[np.int8]  # of the cache that answered: 1 process, 2 shared, 3 semantic, 0 none


def read_serving_scenario(path: str | Path, catalog: Catalog | None = None) -> ServingScenario:
    """Read and check a scenario; all its problems are raised together."""
    return serving_scenario_of(documents.read(Path(path)), catalog)


def serving_scenario_of(document: Document, catalog: Catalog | None = None) -> ServingScenario:
    """The scenario that a document describes."""
    reader, shelf = ServingReader(document), catalog or load()
    plain = {key: value for key, value in document.content.items() if key not in TABLES}
    root = reader.table((), plain, {**ROOT, **_tables_by_name(plain)})
    if "version" not in document.content:
        reader.problem((), '"version" is missing', "write version = 1")
    elif root["version"] not in (None, 1):
        reader.problem(("version",), f"version is {root['version']:g}", "this release reads version = 1")
    model = _model(reader, str(root["model"]), shelf)
    regions = read_regions(reader)
    made = read_pools(reader, model, regions, shelf)
    pools = [pool for pool, _ in made]
    streams = _streams(reader, regions, pools, model)
    limits = reader.table(("slo",), document.content.get("slo"), SLO)
    whole_fleet = len(pools) == len(_rows(document, "pool"))
    rule = read_autoscaling(reader, pools if whole_fleet else [])
    outages = read_outages(reader, pools if whole_fleet else [], regions, rule is not None)
    cache = read_cache(reader, [one.traffic for one in streams])
    fleet = None
    if pools and whole_fleet:
        fleet = reader.attempt(
            ("pool",),
            lambda: Fleet(
                pools=tuple(pools),
                routing=cast(Routing, root["routing"]),
                affinity_load_ratio=number(root["affinity_load"]),
                distance_s=regions.distance_s,
                num_spill=whole(root["spill"]),
                outages=outages,
                autoscaling=rule,
            ),
        )
    _raise(reader)
    assert fleet is not None
    assert model is not None
    return ServingScenario(
        name=str(root["name"]) or Path(document.path).stem,
        path=document.path,
        model=model,
        fleet=fleet,
        precisions=tuple(name for _, name in made),
        streams=tuple(streams),
        regions=regions.names,
        slo=Slo(ttft_s=number(limits["ttft"]), tpot_s=number(limits["tpot"])),
        cache=cache,
        seed=whole(root["seed"]),
        warmup_s=_warmup_s(streams) if root["warmup"] is None else number(root["warmup"]),
        until_s=inf if root["until"] is None else number(root["until"]),
    )


def _tables_by_name(plain: dict[str, documents.Value]) -> dict[str, Rule]:
    """Nothing where all keys are known; else the tables too, so that the nearest name may be one of them."""
    return {name: Rule("text") for name in TABLES} if set(plain) - set(ROOT) else {}


def _rows(document: Document, name: str) -> list[documents.Value]:
    raw = document.content.get(name, [])
    return raw if isinstance(raw, list) else [raw]


def _raise(reader: ServingReader) -> None:
    """All problems together; where nothing is wrong but something cannot be, the answer is no."""
    if reader.problems:
        raise DocumentError(reader.document.path, [*reader.problems, *reader.infeasible])
    if reader.infeasible:
        first, *others = reader.infeasible
        also = "".join(f"; {one.where}: {one.message}" for one in others)
        raise InfeasibleError(first.message + also, where=first.where, hint=first.hint)


def _model(reader: ServingReader, name: str, shelf: Catalog) -> Model | None:
    if not isinstance(reader.document.content.get("model"), str):
        return None  # which is a problem already
    if name.endswith(".json"):
        from datahall.catalog.huggingface import from_config

        file = Path(reader.document.path).parent / name
        return reader.attempt(("model",), lambda: from_config(file))
    return reader.attempt(("model",), lambda: shelf.model(name))


def _streams(reader: ServingReader, regions: Regions, pools: list[Pool], model: Model | None) -> list[Stream]:
    rows = reader.rows("traffic", TRAFFIC)
    if not rows:
        reader.problem((), "[traffic] is missing", 'e.g. preset = "sharegpt", rate = 20, requests = 5000')
    longest = min(
        (pool.replica.max_context or pool.replica.model.max_context for pool in pools),
        default=model.max_context if model else 0,
    )
    streams = []
    for place, raw, values in rows:
        region = regions.shares(reader, (*place, "region"), raw.get("region", ""))
        coming = read_traffic(reader, place, raw, values, longest)
        if coming is None:
            continue
        if coming.users is not None and len(rows) > 1:
            reader.problem(
                (*place, "users"),
                "users beside other traffic",
                "users come alone; say a rate for each stream",
            )
        streams.append(Stream(traffic=coming, region_fractions=region, priority=whole(values["priority"])))
    return streams


def _warmup_s(streams: list[Stream]) -> float:
    """Time at the start that is played but not measured: an empty fleet flatters."""
    return WARMUP * max((expected_s(one.traffic) for one in streams), default=0.0)


def expected_s(traffic: Traffic) -> float:
    """How long requests come, where that is known before they do; otherwise 0."""
    if traffic.arrivals is None or not isfinite(traffic.arrivals.rate_per_s):
        return traffic.duration_s
    sessions = traffic.num_requests / traffic.conversation.num_turns
    return traffic.duration_s or sessions / traffic.arrivals.rate_per_s


def requests_of(scenario: ServingScenario) -> Iterator[tuple[Requests, Ints]]:
    """All requests in the order of their arrival, in chunks, and the stream of each."""

    def rows(place: int, one: Stream) -> Iterator[Requests]:
        # Streams of one scenario must not draw the same gaps; the first keeps the seed that flags would give it.
        seed = scenario.seed if place == 0 else int(stream(scenario.seed, "traffic", place).integers(1 << 62))
        return (with_priority(chunk, one.priority) for chunk in generate(one.traffic, seed))

    return merge([rows(place, one) for place, one in enumerate(scenario.streams)])


def play(scenario: ServingScenario, *, trace_s: float = 0.0) -> ServingOutcome:
    """Run a scenario.  What each request did is kept, so that it can be asked for by region and by tier."""
    chunks, streams = [], []
    for chunk, own in requests_of(scenario):
        chunks.append(chunk)
        streams.append(own)
    whole_stream = np.concatenate(streams) if streams else np.zeros(0, np.int64)
    region = regions_of(scenario, [chunk.session for chunk in chunks], whole_stream)
    tier, fleet, answer_s = np.zeros(region.size, np.int8), scenario.fleet, None
    if scenario.cache is not None and chunks:
        random = stream(scenario.seed, "response cache")
        tier = np.concatenate([draw_hits(chunk, scenario.cache, random) for chunk in chunks])
        answer_s = answer_times(tier, scenario.cache)
        fleet = behind_cache(fleet, float(scenario.cache.tier_s[0]))
    users = scenario.streams[0].traffic.users
    run = simulate_serving(
        fleet, iter(chunks), users=users.num if users else 0, slo=scenario.slo, seed=scenario.seed, record=True,
        answer_s=answer_s, region=region if scenario.regions else None, warmup_s=scenario.warmup_s,
        until_s=scenario.until_s, trace_s=trace_s,
    )  # fmt: skip
    return ServingOutcome(scenario=scenario, run=run, stream=whole_stream, region=region, tier=tier)


def regions_of(scenario: ServingScenario, sessions: list[Ints], own: Ints) -> Ints:
    """Where each request comes from: all of a session from one place, drawn by the shares of its stream."""
    region = np.zeros(own.size, np.int64)
    session = np.concatenate(sessions) if sessions else region
    for place, one in enumerate(scenario.streams):
        rows = np.flatnonzero(own == place)
        if max(one.region_fractions) == 1.0:
            region[rows] = one.region_fractions.index(1.0)
            continue
        _, which = np.unique(session[rows], return_inverse=True)
        random = stream(scenario.seed, "regions", place)
        limits = np.cumsum(one.region_fractions)[:-1]
        drawn = np.searchsorted(limits, random.random(which.max(initial=-1) + 1), side="right")
        region[rows] = drawn[which]
    return region


def behind_cache(fleet: Fleet, lookup_s: float) -> Fleet:
    """The fleet as a request meets it that no tier has answered: its first token, and all after it, come that later."""
    changed = []
    for pool in fleet.pools:
        engine = pool.replica.engine
        slower = msgspec.structs.replace(engine, first_token_s=engine.first_token_s + lookup_s)
        changed.append(
            msgspec.structs.replace(pool, replica=msgspec.structs.replace(pool.replica, engine=slower))
        )
    return msgspec.structs.replace(fleet, pools=tuple(changed))
