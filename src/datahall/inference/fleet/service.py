"""A service: its fleet, who asks what from where, what stands in front, and what fails when; and a run of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.entries.model import Model
from datahall.errors import ScenarioError, option
from datahall.events import stream as random_stream
from datahall.inference.closed_form.fleet_state import closed_form, under_way_of
from datahall.inference.closed_form.steady_state import State
from datahall.inference.early import region_number
from datahall.inference.engine.replica import Replica
from datahall.inference.fleet.build import cache_of, fleet_of
from datahall.inference.fleet.fleet import Fleet
from datahall.inference.fleet.merged_traffic import merge, with_priority
from datahall.inference.fleet.response_cache import ResponseCache, answer_times, draw_hits
from datahall.inference.fleet.span import (
    MeasuredWindow,
    enough_requests,
    enough_turns,
    expected_s,
    measured_window,
    stay_s,
    warm_s,
)
from datahall.inference.simulation.progress import reported
from datahall.inference.simulation.run import ServingRun
from datahall.inference.simulation.simulate import simulate_serving
from datahall.inference.simulation.state import ALL_ROWS
from datahall.inference.step.price import StepPrice, price_steps
from datahall.scenario.requests import requests_of
from datahall.scenario.scenario import Attempts, Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.fleet import AnswerCache, Measurement, Region
from datahall.scenario.sections.traffic import DEFAULT_REQUESTS
from datahall.scenario.sections.traffic import Traffic as Said
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.traffic.conversation import Cut, UnderWay
from datahall.workload.traffic.requests import Requests
from datahall.workload.traffic.traffic import Traffic, TrafficStream, generate

Ints = NDArray[np.int64]

TELLING_STAYS = 3.0  # in which a fleet that gets more than it holds shows it


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of one kind, as urgent as each other."""

    traffic: Traffic
    region_fractions: tuple[float, ...] = (1.0,)  # of its sessions that come from each region
    priority: int = 0  # lower goes first


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a run needs, and the closed form of the same question where there is one."""

    model: Model
    fleet: Fleet
    precisions: tuple[str, ...]  # of each pool, by name
    streams: tuple[Stream, ...]
    regions: tuple[str, ...] = ()
    promise: Promise = Promise()
    cache: ResponseCache | None = None
    seed: int
    window: MeasuredWindow = (
        MeasuredWindow()
    )  # what of the run is measured: neither what fills the fleet nor what drains it
    stay_s: float  # of a request in closed form; 0 where there is none
    users_over_s: float  # in which users begin, one after the other
    under_way: UnderWay | None = None  # conversations and caches when the run begins; None: empty
    until_s: float = inf
    length_chosen: bool = False  # from the load: nobody said how many requests come, or how long
    price: StepPrice
    steady: State | None = None

    @property
    def replica(self) -> Replica:
        """Of the last pool: the one that decodes."""
        return self.fleet.pools[-1].replica

    @property
    def traffic(self) -> Traffic:
        """The first stream, which stands for all in a headline."""
        return self.streams[0].traffic

    @property
    def num_last(self) -> int:
        """Requests at the end that only keep the load up for the others."""
        return max(0, self.traffic.num_requests - self.window.num_rows)

    def measures(self, arrival_s: NDArray[np.float64], row: Ints) -> NDArray[np.bool_]:
        """Which requests are measured."""
        window = self.window
        number = np.argsort(np.argsort(arrival_s, kind="stable")) if self.under_way else row
        return (arrival_s >= window.start_s) & (arrival_s < window.end_s) & (number < window.num_rows)

    @property
    def records(self) -> bool:
        """Whether each request must be kept apart to tell what happened."""
        special = self.cache or self.fleet.outages or self.regions or len(self.streams) > 1
        return bool(special)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A service that was simulated; columns are over requests, in the order of `run.records.row`."""

    service: Service
    run: ServingRun
    stream: Ints
    region: Ints
    tier: NDArray[np.int8]  # of the cache that answered: 1 process, 2 shared, 3 semantic, 0 none
    cut: Cut = msgspec.field(default_factory=Cut)  # what did not fit the context
    recorded_s: float = (
        0.0  # for how long the trace of the first stream goes on; 0: all at one time, or no trace
    )

    @property
    def is_cut(self) -> bool:
        """Whether the context changed any request."""
        return bool(self.cut.num_prompts or self.cut.num_outputs or self.cut.num_turns)

    @property
    def keeps_limits(self) -> bool:
        """Whether as many requests as there should kept both limits."""
        run, share = self.run, self.service.promise.percentile
        held = run.stable and not self.is_burst
        return bool(held and run.num_measured and run.good_fraction >= share)

    @property
    def is_burst(self) -> bool:
        """Whether more comes than the fleet holds in closed form, in a run too short to show it."""
        steady, told_s = self.service.steady, TELLING_STAYS * self.service.stay_s
        return steady is not None and steady.use > 1.0 and self.run.stable and self.run.measured_s < told_s

    @property
    def beyond(self) -> list[tuple[str, float, float]]:
        """The latencies that pass their limits at the percentile asked for: name, what was reached, limit [s]."""
        promise = self.service.promise
        reached = (
            ("TTFT", self.run.ttft_s(promise.percentile), promise.ttft_s),
            ("TPOT", self.run.tpot_s(promise.percentile), promise.tpot_s),
        )
        return [one for one in reached if one[1] > one[2]]


def service_of(scenario: Scenario) -> Service:
    """The service that a scenario describes; all its problems are raised together."""
    attempts = Attempts(scenario)
    regions = scenario.all(Region)
    fleet = fleet_of(scenario, attempts, regions)
    longest = _longest(fleet)
    streams = [
        attempts.make(partial(_stream, said, regions, longest), index=index, section="traffic")
        for index, said in enumerate(scenario.all(Said))
    ]
    known = tuple(stream for stream in streams if stream is not None)
    if len(known) > 1 and any(stream.traffic.users for stream in known):
        attempts.make(_users_alone, field="users")
    caches = scenario.all(AnswerCache)
    cache = attempts.make(
        lambda: cache_of(caches[0] if caches else None, [stream.traffic for stream in known]), field="cache"
    )
    asked = scenario.one(Measurement)
    attempts.make(asked.check, field="warmup")
    attempts.finish()
    assert fleet is not None
    fleet, price = _priced(fleet, attempts)
    plain = not (cache or fleet.outages or regions or len(known) > 1)
    steady = closed_form(fleet, known[0].traffic, price)
    stay = stay_s(known[0].traffic, steady)
    going = under_way_of(fleet, known[0].traffic, stay) if len(known) == 1 else None
    chosen = bool(stay or going) and not _length_said(scenario.all(Said)[0])
    if chosen and len(known) == 1:
        known = (_of_length(known[0], stay, going),)
    until_s = inf if asked.until_s is None else asked.until_s
    window = _window(known, stay, until_s, going)
    if asked.warmup_s is not None:
        window = window._replace(start_s=asked.warmup_s)
    return Service(
        model=fleet.pools[0].replica.model,
        fleet=fleet,
        precisions=_precisions(scenario, fleet),
        streams=known,
        regions=tuple(region.name for region in regions),
        promise=scenario.one(Promise),
        cache=cache,
        seed=scenario.root.seed,
        window=window,
        stay_s=stay,
        users_over_s=stay + first.think.mean_s if stay and (first := known[0].traffic.users) else 0.0,
        under_way=going,
        until_s=until_s,
        price=price,
        steady=steady if plain and asked.until_s is None else None,
        length_chosen=chosen and len(known) == 1,
    )


def _priced(fleet: Fleet, attempts: Attempts) -> tuple[Fleet, StepPrice]:
    """The fleet with its tables of step times, which take longest to make, and the price of the pool that decodes."""
    found = [attempts.make(partial(price_steps, pool.replica), section="deployment") for pool in fleet.pools]
    attempts.finish()
    prices = [price for price in found if price is not None]
    pools = tuple(
        msgspec.structs.replace(pool, table=price.table)
        for pool, price in zip(fleet.pools, prices, strict=True)
    )
    return msgspec.structs.replace(fleet, pools=pools), prices[-1]


def _precisions(scenario: Scenario, fleet: Fleet) -> tuple[str, ...]:
    """The name of each pool's format; a disaggregated deployment has two pools."""
    names = [
        name
        for part in scenario.all(Deployment)
        for name in [part.precision] * (2 if part.disaggregated else 1)
    ]
    return tuple(names[: len(fleet.pools)])


def _longest(fleet: Fleet | None) -> int:
    """The longest sequence that every pool accepts."""
    if fleet is None:
        return 0
    return min(pool.replica.max_context or pool.replica.model.max_context for pool in fleet.pools)


def _stream(said: Said, regions: tuple[Region, ...], longest: int) -> Stream:
    names = tuple(region.name for region in regions)
    where = said.region or ({} if not names else {"": 1.0})
    numbers = {region_number(name, names, "from_region"): share for name, share in where.items()}
    return Stream(
        traffic=requests_of(said, 0 if said.trace else longest),
        region_fractions=tuple(numbers.get(place, 0.0) for place in range(len(names))) or (1.0,),
        priority=said.priority,
    )


def _users_alone() -> None:
    raise ScenarioError(
        "users beside other traffic",
        field="users",
        hint=f"users come alone; give each stream its {option('rate')}",
    )


def _length_said(said: Said) -> bool:
    return said.requests is not None or said.duration_s is not None


def _of_length(stream: Stream, stay: float, going: UnderWay | None) -> Stream:
    """The stream with as many requests as make a run long beside a stay, and beside what conversations take."""
    traffic, num = stream.traffic, enough_requests(stream.traffic, stay)
    if going is not None:
        num = max(num, enough_turns(traffic, going, least=DEFAULT_REQUESTS))
    return msgspec.structs.replace(stream, traffic=msgspec.structs.replace(traffic, num_requests=num))


def _window(
    streams: tuple[Stream, ...], stay: float, until_s: float = inf, going: UnderWay | None = None
) -> MeasuredWindow:
    """An empty fleet flatters, a first round of users does not last, nor a fleet to which nobody comes any more."""
    first = streams[0].traffic
    coming_s = max((expected_s(stream.traffic, stay) for stream in streams), default=0.0)
    counted = len(streams) == 1 and not first.duration_s and until_s >= coming_s
    num = first.num_requests if counted else 0
    coming_s = min(coming_s, until_s)
    return measured_window(coming_s, stay, num_requests=num, first_s=warm_s(first, stay, going, coming_s))


def drawn_streams(service: Service) -> list[TrafficStream]:
    """The requests of each stream: no two may draw the same gaps, so only the first keeps the seed itself."""
    seeds = [
        service.seed if place == 0 else int(random_stream(service.seed, "traffic", place).integers(1 << 62))
        for place in range(len(service.streams))
    ]
    return [
        generate(stream.traffic, seed, under_way=service.under_way)
        for stream, seed in zip(service.streams, seeds, strict=True)
    ]


def requests_in_order(
    service: Service, drawn: Sequence[TrafficStream] | None = None
) -> Iterator[tuple[Requests, Ints]]:
    """All requests in the order of their arrival, in chunks, and the stream of each."""

    def rows(chunks: TrafficStream, priority: int) -> Iterator[Requests]:
        return (with_priority(chunk, priority) for chunk in chunks)

    streams = zip(drawn or drawn_streams(service), service.streams, strict=True)
    return merge([rows(chunks, stream.priority) for chunks, stream in streams])


def simulate_service(
    service: Service, *, record: bool = False, trace_s: float = 0.0, watch: bool = False
) -> Outcome:
    """Run a service.  What each request did is kept if asked, or where regions, tiers, failures or streams differ."""
    users = service.traffic.users
    drawn = drawn_streams(service)
    asked = partial(
        simulate_serving, users=users.num if users else 0, users_until_s=service.traffic.duration_s or inf,
        slo=service.promise, seed=service.seed, warmup_s=service.window.start_s,
        measure_until_s=service.window.end_s, measure_rows=service.window.num_rows, drain_apart=True,
        users_over_s=service.users_over_s,
        most_arrivals=(service.traffic.num_requests or ALL_ROWS) if service.under_way else 0,
        until_s=service.until_s, trace_s=trace_s, watch=watch,
    )  # fmt: skip
    if not (record or service.records):
        told = reported(drawn[0], service.traffic.num_requests)
        run, none = asked(service.fleet, told), np.zeros(0, np.int64)
        return Outcome(
            service=service, run=run, stream=none, region=none, tier=np.zeros(0, np.int8), cut=drawn[0].cut,
            recorded_s=drawn[0].recorded_s,
        )  # fmt: skip
    chunks, streams = [], []
    for chunk, own in requests_in_order(service, drawn):
        chunks.append(chunk)
        streams.append(own)
    stream = np.concatenate(streams) if streams else np.zeros(0, np.int64)
    region = regions_of(service, [chunk.session for chunk in chunks], stream)
    tier, fleet, answer_s = np.zeros(region.size, np.int8), service.fleet, None
    if service.cache is not None and chunks:
        random = random_stream(service.seed, "response cache")
        tier = np.concatenate([draw_hits(chunk, service.cache, random) for chunk in chunks])
        answer_s = answer_times(tier, service.cache)
        fleet = behind_cache(fleet, float(service.cache.tier_s[0]))
    run = asked(
        fleet,
        iter(chunks),
        record=True,
        answer_s=answer_s,
        region=region if service.regions else None,
    )
    return Outcome(
        service=service, run=run, stream=stream, region=region, tier=tier, cut=_all_cut(drawn),
        recorded_s=drawn[0].recorded_s,
    )  # fmt: skip


def _all_cut(drawn: Sequence[TrafficStream]) -> Cut:
    names = Cut.__struct_fields__
    return Cut(**{name: sum(getattr(stream.cut, name) for stream in drawn) for name in names})


def regions_of(service: Service, sessions: list[Ints], own: Ints) -> Ints:
    """Where each request comes from: all of a session from one place, drawn by the shares of its stream."""
    region = np.zeros(own.size, np.int64)
    session = np.concatenate(sessions) if sessions else region
    for place, stream in enumerate(service.streams):
        rows = np.flatnonzero(own == place)
        if max(stream.region_fractions) == 1.0:
            region[rows] = stream.region_fractions.index(1.0)
            continue
        _, which = np.unique(session[rows], return_inverse=True)
        random = random_stream(service.seed, "regions", place)
        limits = np.cumsum(stream.region_fractions)[:-1]
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
