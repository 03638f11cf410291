"""From what a person says to a fleet: pools, router, autoscaling, regions, failures and the cache in front."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import inf, isfinite
from typing import cast

from datahall.catalog.entries.model import Model
from datahall.cluster.wiring import Wiring, wiring_of
from datahall.errors import ScenarioError, nearest, option
from datahall.inference.deploy import pools_of
from datahall.inference.early import region_number
from datahall.inference.engine.asked import deployment_of
from datahall.inference.fleet.autoscale import Autoscaling
from datahall.inference.fleet.fleet import Fleet, Pool, ReplicaOutage
from datahall.inference.fleet.response_cache import ExactTier, Questions, ResponseCache, SemanticTier
from datahall.scenario.scenario import Attempts, Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.scenario.sections.failure import Failure
from datahall.scenario.sections.fleet import AnswerCache, Region, Router
from datahall.scenario.words import Routing
from datahall.workload.traffic.traffic import Traffic


def fleet_of(scenario: Scenario, attempts: Attempts, regions: Sequence[Region]) -> Fleet | None:
    """The fleet of a scenario; what is wrong with any part of it is kept by `attempts`."""
    model = attempts.make(scenario.model, field="model")
    if model is None:
        return None
    names = tuple(region.name for region in regions)
    router, wiring = scenario.one(Router), attempts.make(lambda: wiring_of(scenario))
    made = [
        attempts.make(
            partial(_pools, scenario, index, model, wiring, names), index=index, section="deployment"
        )
        for index in range(len(scenario.all(Deployment)))
    ]
    pools = tuple(pool for group in made if group for pool in group)
    whole = all(group is not None for group in made)
    distances = attempts.make(lambda: distances_of(regions), field="region")
    rule = autoscaling_of(router)
    if not pools or not whole or distances is None:
        return None
    if rule is not None and pools[0].count > rule.most:
        attempts.make(lambda: _too_many(pools[0], rule), field="autoscale")
        return None
    outages: list[ReplicaOutage] = []
    for index, failure in enumerate(scenario.all(Failure)):
        if not failure.of_service:
            continue
        lost = attempts.make(
            partial(outages_of, failure, outages, pools, names, scales=rule is not None),
            index=index, field="failure",
        )  # fmt: skip
        outages += lost or ()
    return attempts.make(
        lambda: Fleet(
            pools=pools,
            routing=cast(Routing, router.routing),
            affinity_load_ratio=router.affinity_load_ratio,
            distance_s=distances,
            num_spill=router.spill,
            outages=tuple(outages),
            autoscaling=rule,
        ),
        section="deployment",
    )


def _pools(
    scenario: Scenario, index: int, model: Model, wiring: Wiring | None, regions: tuple[str, ...]
) -> tuple[Pool, ...]:
    """The pools of one deployment, on the fabric of the scenario."""
    return pools_of(deployment_of(scenario, index), model, scenario.catalog, wiring, regions)


def _too_many(pool: Pool, rule: Autoscaling) -> None:
    raise ScenarioError(
        f"the first pool starts with {pool.count:,} replicas, more than the {rule.most:,} allowed", field="autoscale",
        hint=f"{option('autoscale', f'{rule.least}..{pool.count}')}, or fewer {option('replicas')}",
    )  # fmt: skip


def autoscaling_of(router: Router) -> Autoscaling | None:
    """The rule of the autoscaler; None where nothing scales."""
    if router.autoscale is None:
        return None
    return Autoscaling(
        target=router.autoscale.target,
        interval_s=router.interval_s,
        cold_start_s=router.cold_start_s,
        patience_s=router.patience_s,
        least=router.autoscale.least,
        most=router.autoscale.most,
    )


def distances_of(regions: Sequence[Region]) -> tuple[tuple[float, ...], ...]:
    """How far regions are apart, one way, said from either side."""
    names = [region.name for region in regions]
    if not names:
        return ((0.0,),)
    twice = [name for name in names if names.count(name) > 1]
    if "" in names or twice:
        raise ScenarioError(
            f'two regions are named "{twice[0]}"' if twice and twice[0] else "a region without a name",
            field="region", hint="give each a name of its own",
        )  # fmt: skip
    far = {
        (region.name, other): distance_s for region in regions for other, distance_s in region.to_s.items()
    }
    strange = [other for _, other in far if other not in names]
    if strange:
        close = nearest(strange[0], names, 1)
        guess = f"; did you mean {close[0]}?" if close else ""
        raise ScenarioError(
            f'"{strange[0]}" is not a region', field="region", hint=f"one of {', '.join(names)}{guess}"
        )
    for place, name in enumerate(names):
        for other in names[place + 1 :]:
            if (name, other) not in far and (other, name) not in far:
                raise ScenarioError(
                    f"no distance from {name} to {other}", field="region",
                    hint=f'in the region {name}: to = {{ {other} = "40 ms" }}, one way',
                )  # fmt: skip
    inside = {region.name: region.inside_s for region in regions}
    return tuple(
        tuple(
            inside[name] if name == other else far.get((name, other), far.get((other, name), 0.0))
            for other in names
        )
        for name in names
    )


def outages_of(
    failure: Failure,
    others: Sequence[ReplicaOutage],
    pools: Sequence[Pool],
    regions: tuple[str, ...],
    *,
    scales: bool,
) -> list[ReplicaOutage]:
    """Replicas that a failure takes for a while, by number or by region; none may be out already."""
    outages = [
        ReplicaOutage(
            replica=replica,
            start_s=failure.start_s,
            duration_s=inf if failure.duration_s is None else failure.duration_s,
            drain=failure.drain,
        )
        for replica in _lost(failure, pools, regions, scales)
    ]
    for outage in outages:
        _check_apart(outage, others)
    return outages


def _check_apart(outage: ReplicaOutage, others: Sequence[ReplicaOutage]) -> None:
    for other in others:
        if (
            other.replica == outage.replica
            and other.start_s < outage.start_s + outage.duration_s
            and outage.start_s < other.start_s + other.duration_s
        ):
            raise ScenarioError(
                f"replica {outage.replica} is out from {other.start_s:g} s for {other.duration_s:g} s already",
                field="failure",
                hint="failures of one replica follow each other",
            )


def _lost(failure: Failure, pools: Sequence[Pool], regions: tuple[str, ...], scales: bool) -> list[int]:
    """The replicas of a failure, counted over all pools."""
    if bool(failure.replicas) == bool(failure.region):
        raise ScenarioError(
            "a failure of a service names replicas or a region", field="failure",
            hint='replicas = "0-3", or region = "eu"',
        )  # fmt: skip
    stands = [pool.region for pool in pools for _ in range(pool.count)]
    lost = list(failure.replicas)
    if failure.region:
        where = region_number(failure.region, regions, "failure")
        lost = [replica for replica, region in enumerate(stands) if region == where]
    beyond = [replica for replica in lost if replica >= len(stands)]
    if beyond:
        raise ScenarioError(
            f"replica {beyond[0]} is not there", field="failure",
            hint=f"0 to {len(stands) - 1}, counted over all pools",
        )  # fmt: skip
    if scales and any(replica >= pools[0].count for replica in lost):
        raise ScenarioError(
            "a failure outside the first pool, which autoscaling renumbers", field="failure",
            hint=f"failures of the first pool, or no {option('autoscale')}",
        )  # fmt: skip
    return lost


def cache_of(asked: AnswerCache | None, streams: Sequence[Traffic]) -> ResponseCache | None:
    """The cache of whole answers in front of the fleet."""
    if asked is None:
        return None
    asked.check()
    rate = asked.rate_per_s or offered_per_s(streams)
    if not rate or rate == inf:
        raise ScenarioError(
            "how often questions come is not known",
            field="cache",
            hint=f"say how many come a second in {option('cache')}, e.g. rate=20",
        )
    return ResponseCache(
        questions=Questions(
            rate_per_s=rate,
            num=asked.questions,
            zipf_factor=asked.zipf,
            unique_fraction=asked.unique_fraction,
        ),
        process=ExactTier(
            num_entries=asked.process,
            ttl_s=asked.process_ttl_s if asked.process else 0.0,
            num_caches=asked.processes,
            lookup_s=asked.process_lookup_s if asked.process else 0.0,
        ),
        shared=ExactTier(
            num_entries=asked.shared,
            ttl_s=asked.shared_ttl_s if asked.shared else 0.0,
            lookup_s=asked.shared_lookup_s if asked.shared else 0.0,
        ),
        semantic=SemanticTier(
            hit_fraction=asked.semantic_fraction,
            lookup_s=asked.semantic_lookup_s if asked.semantic_fraction else 0.0,
        ),
    )


def offered_per_s(streams: Sequence[Traffic]) -> float:
    """First turns per second of all streams; 0 where a trace, users or a rush do not tell."""
    rates = [stream.arrivals.rate_per_s if stream.arrivals else 0.0 for stream in streams]
    return sum(rates) if all(rate and isfinite(rate) for rate in rates) else 0.0
