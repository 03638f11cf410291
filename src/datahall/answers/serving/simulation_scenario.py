"""`datahall simulate serve scenario.toml`: a whole service from a file, with regions, outages, scaling and a cache."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np

from datahall.answer import Answer, Cell, Table
from datahall.answers.serving.scenario_tables import (
    cache_table,
    outage_table,
    recomputed_tokens,
    region_table,
    scaling_chart,
    scaling_table,
    traffic_table,
)
from datahall.answers.serving.simulation import serve_answer
from datahall.answers.serving.simulation_run import TRACED_S, Service, closed_form
from datahall.answers.serving.simulation_tables import replica_table
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.inference.fleet.response_cache import hit_rates
from datahall.inference.scenario import ServingOutcome, ServingScenario, play, read_serving_scenario
from datahall.inference.step.price import price_steps

FREE_FLAGS = ("seed",)  # that go with a scenario


def is_scenario(name: str) -> bool:
    """Whether the thing to simulate is a file of ours and not a model."""
    return name.endswith(".toml")


def scenario_served(
    file: str | Path, *, catalog: Catalog | None = None, **said: str | int | float | bool | None
) -> tuple[Service, ServingOutcome]:
    """Play a scenario; a flag that says what the file says is an error."""
    against = [name for name in said if name not in FREE_FLAGS]
    if against:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in against)
        raise ScenarioError(
            f"{flags} beside a scenario",
            where=str(file),
            hint=f"write it into {file}, or leave the file out; with a file go --seed, --format and -o",
        )
    scenario = read_serving_scenario(file, catalog)
    if said.get("seed") is not None:
        scenario = msgspec.structs.replace(scenario, seed=int(said["seed"] or 0))
    outcome = play(scenario, trace_s=TRACED_S)
    return service_of(outcome), outcome


def service_of(outcome: ServingOutcome) -> Service:
    """The outcome as an answer from flags sees it; of several streams the first stands for all."""
    scenario = outcome.scenario
    traffic, price = scenario.streams[0].traffic, price_steps(scenario.fleet.pools[-1].replica)
    return Service(
        fleet=scenario.fleet,
        traffic=traffic,
        slo=scenario.slo,
        run=outcome.run,
        precision="/".join(dict.fromkeys(scenario.precisions)),
        price=price,
        steady=closed_form(scenario.fleet, traffic, price) if _plain(scenario) else None,
        seed=scenario.seed,
        precisions=scenario.precisions,
    )


def _plain(scenario: ServingScenario) -> bool:
    """Whether nothing happens that the closed form does not know."""
    special = scenario.cache or scenario.fleet.outages or scenario.regions or len(scenario.streams) > 1
    return not special and np.isinf(scenario.until_s)


def scenario_answer(service: Service, outcome: ServingOutcome) -> Answer:
    """What happened, and what each thing that the scenario adds did to it."""
    answer, scenario, run = serve_answer(service), outcome.scenario, outcome.run
    names = tuple(_pool_name(scenario, place) for place in range(len(scenario.fleet.pools)))
    tables: list[Table] = [answer.tables[0]]
    if len(scenario.streams) > 1:
        tables.append(traffic_table(outcome))
    if scenario.regions:
        tables.append(region_table(outcome))
    if scenario.cache is not None:
        tables.append(cache_table(outcome))
    if scenario.fleet.outages:
        tables.append(outage_table(outcome))
    tables.append(replica_table(scenario.fleet, run, names))
    if run.scaling is not None:
        tables.append(scaling_table(outcome, run.scaling))
    return msgspec.structs.replace(
        answer,
        inputs=_inputs(answer, outcome),
        headline=f"{scenario.name}: {answer.headline}",
        results={**answer.results, **_results(outcome)},
        tables=(*tables, *answer.tables[2:]),
        charts=(scaling_chart(run.scaling),) if run.scaling is not None else (),
        notes=(*answer.notes, *_notes(outcome)),
        sources=(*answer.sources, *_sources(outcome, answer)),
        next_commands=(
            f"datahall simulate serve {scenario.path} --seed {scenario.seed + 1}",
            f"datahall simulate serve {scenario.path} -o run.perfetto-trace",
        ),
    )


def _pool_name(scenario: ServingScenario, place: int) -> str:
    """Role and region, or the chip where neither says anything."""
    pools = scenario.fleet.pools
    pool = pools[place]
    region = scenario.regions[pool.region] if scenario.regions else ""
    role = "" if pool.role == "both" else pool.role
    words = " ".join(word for word in (role, region) if word)
    if len(pools) == 1:
        return words or "all"
    return f"{words or place + 1}: {pool.replica.chip.name}"


def _inputs(answer: Answer, outcome: ServingOutcome) -> dict[str, Cell]:
    scenario = outcome.scenario
    named = " + ".join(one.traffic.name for one in scenario.streams)
    inputs: dict[str, Cell] = {"scenario": scenario.path, **answer.inputs, "traffic": named}
    rates = [one.traffic.arrivals.rate_per_s if one.traffic.arrivals else None for one in scenario.streams]
    known = [
        rate * one.traffic.conversation.num_turns
        for rate, one in zip(rates, scenario.streams, strict=True)
        if rate is not None
    ]
    inputs["requests_per_s"] = sum(known) if len(known) == len(rates) else None
    if scenario.regions:
        inputs["regions"] = ", ".join(scenario.regions)
    return inputs


def _results(outcome: ServingOutcome) -> dict[str, Cell]:
    run, scenario = outcome.run, outcome.scenario
    found: dict[str, Cell] = {"num_answered": run.num_answered, "num_rerouted": run.num_rerouted}
    if scenario.cache is not None:
        found["answered_fraction"] = run.num_answered / run.num_arrived if run.num_arrived else None
        found["expected_answered_fraction"] = hit_rates(scenario.cache).total_fraction
        found["miss_wait_s"] = float(scenario.cache.tier_s[0])
    if scenario.fleet.outages:
        found["recomputed_tokens"] = recomputed_tokens(run)
    if run.scaling is not None:
        found["replica_s"] = float(run.replicas.active_s.sum())
        found["peak_replicas"] = int(run.scaling.num_active.max())
        found["least_replicas"] = int(run.scaling.num_active.min())
    return found


def _notes(outcome: ServingOutcome) -> tuple[str, ...]:
    scenario, lines = outcome.scenario, []
    if scenario.regions:
        lines.append("distances are one way; a request goes to its own region while that has room")
    if scenario.cache is not None:
        lines.append(
            "the cache stands in front of the router, in the region of the request; hit rates are those of a cache "
            "that has filled; what it does not answer has waited for every tier, which is in its TTFT and E2E"
        )
        lines.append("in the table of latencies an answer from the cache counts as 0 s per token")
    if outcome.run.scaling is not None and len(scenario.fleet.pools) > 1:
        lines.append("only the first pool is scaled")
    return tuple(lines)


def _sources(outcome: ServingOutcome, answer: Answer) -> list[object]:
    """Of engines and traffic that the first ones do not name already."""
    fleet, streams = outcome.scenario.fleet, outcome.scenario.streams
    found = [pool.replica.engine.source for pool in fleet.pools]
    found += [one.traffic.source for one in streams if one.traffic.source is not None]
    return [one for one in dict.fromkeys(found) if one not in answer.sources]
