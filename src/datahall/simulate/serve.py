"""`datahall simulate serve`: requests meet a fleet, and every step of every engine is played."""

from __future__ import annotations

import re
from math import inf, isfinite

import msgspec

from datahall.answer import Answer, Cell
from datahall.breakdown import Band, Breakdown
from datahall.catalog import Catalog
from datahall.catalog.chip import Chip
from datahall.catalog.model import Model
from datahall.errors import ScenarioError
from datahall.events import perfetto
from datahall.inference.autoscale import Autoscaling
from datahall.inference.checkpoint import block_scaled
from datahall.inference.engine import engine_on
from datahall.inference.fleet import Fleet, Pool, Role, Routing
from datahall.inference.kv_capacity import kv_capacity
from datahall.inference.lifecycle import TPOT, TTFT
from datahall.inference.replica import Replica, Speculation
from datahall.inference.scenario import WARMUP, expected_s
from datahall.inference.serving_run import ServingRun
from datahall.inference.simulation import simulate_serving
from datahall.inference.slo import Slo
from datahall.inference.steady import State, at_concurrency, at_rate, curve
from datahall.inference.step_price import StepPrice, price_steps
from datahall.show.bounds import find_model, opened, whole
from datahall.show.serving_plan import positive, share_of
from datahall.show.serving_words import MOST_DRAFTED, counted, described, load_of
from datahall.simulate.serve_tables import crosscheck_table, latency_chart, latency_table, replica_table
from datahall.units import fmt
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


def simulate_serve(
    model: str, *, catalog: Catalog | None = None, **asked: str | int | float | bool | None
) -> Answer:
    """Latency percentiles, goodput, throughput, cache and queue of a fleet under traffic, or of a scenario file."""
    if model.endswith(".toml"):
        from datahall.simulate.serve_scenario import scenario_answer, scenario_served

        return scenario_answer(*scenario_served(model, catalog=catalog, **asked))
    return serve_answer(simulated(model, catalog=catalog, **asked))  # type: ignore[arg-type]


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
    num_users = coming.users.num if coming.users else 0
    run = simulate_serving(
        fleet,
        generate(coming, seed),
        users=num_users,
        slo=slo,
        seed=seed,
        warmup_s=WARMUP * expected_s(coming),
        trace_s=TRACED_S,
    )
    price = price_steps(fleet.pools[-1].replica)
    return Service(
        fleet=fleet, traffic=coming, slo=slo, run=run, precision=precision, price=price,
        steady=closed_form(fleet, coming, price), seed=seed,
    )  # fmt: skip


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


def serve_trace(service: Service) -> bytes:
    """The first seconds of the run as a Perfetto trace: a track per replica, a slice per step or leap."""
    if service.run.trace is None:
        raise ScenarioError("nothing was played", hint="a trace with at least one request")
    kinds = {0: "decode", 1: "decode + prompts", 2: "prompts"}
    tracks = {place: f"replica {place}" for place in range(service.fleet.num_replicas)}
    return perfetto(service.run.trace, kinds, tracks)


def serve_answer(service: Service) -> Answer:
    """What happened, in the order a person asks."""
    run = service.run
    return Answer(
        kind="serving run",
        inputs=_inputs(service),
        headline=_headline(service),
        binding=_binding(service),
        verdict="yes" if run.stable and run.num_measured else "no",
        results=_results(service),
        tables=(
            latency_table(run, service.slo),
            replica_table(service.fleet, run),
            *((crosscheck_table(run, service.steady, service.fleet),) if service.steady else ()),
        ),
        figure=_figure(service),
        charts=(latency_chart(run),) if run.num_measured else (),
        notes=_notes(service),
        sources=tuple(
            one for one in (service.replica.engine.source, service.traffic.source) if one is not None
        ),
        next_commands=_next(service),
    )


def _inputs(service: Service) -> dict[str, Cell]:
    replica, traffic = service.replica, service.traffic
    arrivals = traffic.arrivals
    return {
        "model": replica.model.name, "chip": replica.chip.name, "tp": replica.tp, "pp": replica.pp,
        "dp": replica.dp, "ep": replica.ep, "replicas": service.fleet.num_replicas, "chips": service.fleet.num_chips,
        "precision": service.precision, "engine": replica.engine.name, "routing": service.fleet.routing,
        "traffic": traffic.name, "requests_per_s": arrivals.rate_per_s if arrivals else None,
        "users": traffic.users.num if traffic.users else None, "ttft_s": service.slo.ttft_s,
        "tpot_s": service.slo.tpot_s, "seed": service.seed,
    }  # fmt: skip


def _headline(service: Service) -> str:
    run, fleet, replica = service.run, service.fleet, service.replica
    pools = " and ".join(
        f"{_many(fleet, pool)} of {described(pool.replica, precision)}"
        for pool, precision in zip(
            fleet.pools, service.precisions or (service.precision,) * len(fleet.pools), strict=True
        )
    )
    if not run.num_measured:
        return f"No request was served by {replica.model.title or replica.model.name} on {pools}."
    if not run.stable:
        return (
            f"Overloaded: {replica.model.title or replica.model.name} on {pools} holds "
            f"{run.sustained_per_s:.3g} requests/s, and more come; the queue reached {run.queue_peak:,} and grows."
        )
    return (
        f"{replica.model.title or replica.model.name} on {pools}: {run.good_fraction:.1%} of requests keep TTFT ≤ "
        f"{fmt(service.slo.ttft_s, 's')} and TPOT ≤ {fmt(service.slo.tpot_s, 's')}. Half have their first token within "
        f"{fmt(run.ttft_s(0.5), 's', 3)}, 99 % within {fmt(run.ttft_s(0.99), 's', 3)}; "
        f"{run.output_tokens_per_s:,.0f} output tokens/s."
    )


def _many(fleet: Fleet, pool: Pool) -> str:
    noun = "replica" if pool.role == "both" else f"{pool.role} replica"
    rule = fleet.autoscaling
    if rule is None or pool is not fleet.pools[0]:
        return counted(pool.count, noun)
    return f"{rule.least:,} to {counted(rule.most, noun)}"


def _binding(service: Service) -> str:
    if not service.run.num_measured:
        return _refused(service.run) or "All of them came before the end of the warm-up: play more of them."
    use = service.run.replicas
    there = use.active_s > 0
    busy, cache = float(use.busy_fraction[there].mean()), float(use.cache_peak_fraction.max())
    held = float(use.cache_mean_fraction[there].mean())
    full = "; preemptions show that the cache is too small" if service.run.num_preempted else ""
    return (
        f"Replicas are busy {busy:.0%} of the time, their caches {held:.0%} full on average and "
        f"{cache:.0%} at most{full}."
    )


def _refused(run: ServingRun) -> str:
    if not run.num_rejected:
        return ""
    return f"{run.num_too_long:,} requests were longer than the context, {run.num_too_large:,} larger than any cache."


def _results(service: Service) -> dict[str, Cell]:
    run = service.run
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
    latencies: dict[str, Cell] = {
        f"{name}_{key}_s": _known(measure(share))
        for name, measure in (
            ("ttft", run.ttft_s),
            ("tpot", run.tpot_s),
            ("itl", run.itl_s),
            ("e2e", run.e2e_s),
        )
        for key, share in shares.items()
    }
    return {
        "stable": run.stable,
        "good_fraction": run.good_fraction if run.num_measured else None,
        "goodput_per_s": run.goodput_per_s,
        "requests_per_s": run.requests_per_s,
        "output_tokens_per_s": run.output_tokens_per_s,
        "prompt_tokens_per_s": run.prompt_tokens_per_s,
        "ttft_mean_s": _known(run.mean_s(TTFT)),
        "tpot_mean_s": _known(run.mean_s(TPOT)),
        **latencies,
        "num_arrived": run.num_arrived,
        "num_finished": run.num_finished,
        "num_rejected": run.num_rejected,
        "num_unfinished": run.num_unfinished,
        "num_preempted": run.num_preempted,
        "prefix_hit_tokens": run.hit_tokens,
        "cache_peak_fraction": float(run.replicas.cache_peak_fraction.max()),
        "queue_mean": run.queue_mean,
        "queue_peak": run.queue_peak,
        "duration_s": run.duration_s,
        "sustained_per_s": run.sustained_per_s if isfinite(run.sustained_per_s) else None,
    }


def _known(value: float) -> float | None:
    return value if isfinite(value) else None


def _figure(service: Service) -> Breakdown:
    low, high = service.price.band
    value = service.run.mean_s(TPOT)
    return Breakdown(
        name="time per output token",
        value=value,
        unit="s",
        formula="mean over requests of (last token − first token) / (tokens − 1)",
        band=Band(
            value * low, value * high, f"{service.replica.engine.title}, kernels {service.price.level}"
        ),
        sources=(service.replica.engine.source,),
    )


def _notes(service: Service) -> tuple[str, ...]:
    run, low, high = service.run, *service.price.band
    lines = [
        f"{run.num_finished:,} of {run.num_arrived:,} requests finished in {fmt(run.duration_s, 's', 3)} of simulated "
        f"time; {run.num_measured:,} after the warm-up were measured",
        f"eight of ten measured steps lie between {low:.2f} and {high:.2f} of what is predicted; kernels of "
        f"{service.replica.chip.name}: {service.price.level}",
    ]
    if run.num_rejected:
        lines.append(_refused(run).rstrip("."))
    if run.num_unfinished:
        lines.append(f"{run.num_unfinished:,} requests had not ended when the run did")
    return tuple(lines)


def _shape(traffic: Traffic) -> str:
    """The lengths of some traffic as options."""
    if traffic.trace is not None:
        return ""
    if traffic.source is not None:
        return f"--traffic {traffic.name} "
    load = load_of(traffic)
    return f"--isl {load.prompt:.0f} --osl {load.output:.0f} "


def _next(service: Service) -> tuple[str, ...]:
    replica = service.replica
    if not service.run.stable and isfinite(service.run.sustained_per_s) and service.traffic.arrivals:
        rate = service.traffic.arrivals.rate_per_s
        fewer = max(
            1, round(service.fleet.num_replicas * rate / max(service.run.sustained_per_s, 1e-9) * 1.15)
        )
        return (
            f"datahall simulate serve {replica.model.name} --chip {replica.chip.name} --tp {replica.tp} "
            f"--replicas {fewer} --rate {rate:g} {_shape(service.traffic)}".rstrip(),
        )
    seconds = service.slo.ttft_s if service.slo.ttft_s < inf else 1.0
    return (
        f"datahall plan serve {replica.model.name} --rate {service.run.requests_per_s:.3g} --ttft {seconds:g}s "
        f"{_shape(service.traffic)}--chips {replica.chip.name}",
        "datahall validate inference",
    )
