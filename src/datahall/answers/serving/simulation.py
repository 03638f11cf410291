"""`datahall simulate serve`: requests meet a fleet, and every step of every engine is played."""

from __future__ import annotations

from math import inf, isfinite

from datahall.answer import Answer, Cell
from datahall.answers.serving.simulation_run import Service, simulated
from datahall.answers.serving.simulation_tables import (
    crosscheck_table,
    latency_chart,
    latency_table,
    replica_table,
)
from datahall.answers.serving.words import counted, described, load_of
from datahall.breakdown import Band, Breakdown
from datahall.catalog import Catalog
from datahall.errors import ScenarioError
from datahall.events import perfetto
from datahall.inference.closed_form.bottleneck import mean_step
from datahall.inference.engine.adapters import miss_fraction, resident_bytes
from datahall.inference.engine.replica import Adapters, Replica
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.simulation.lifecycle import TPOT, TTFT
from datahall.inference.simulation.run import ServingRun
from datahall.units import fmt
from datahall.workload.traffic.traffic import Traffic


def simulate_serve(
    model: str, *, catalog: Catalog | None = None, **asked: str | int | float | bool | None
) -> Answer:
    """Latency percentiles, goodput, throughput, cache and queue of a fleet under traffic, or of a scenario file."""
    if model.endswith(".toml"):
        from datahall.answers.serving.simulation_scenario import scenario_answer, scenario_served

        return scenario_answer(*scenario_served(model, catalog=catalog, **asked))
    return serve_answer(simulated(model, catalog=catalog, **asked))  # type: ignore[arg-type]


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
        **(
            {"host_hit_tokens": run.host_hit_tokens, "drive_hit_tokens": run.drive_hit_tokens}
            if _below(service)
            else {}
        ),
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
        parts=_mean_step(service),
        band=Band(
            value * low, value * high, f"{service.replica.engine.title}, kernels {service.price.level}"
        ),
        sources=(service.replica.engine.source,),
    )


def _mean_step(service: Service) -> tuple[Breakdown, ...]:
    """The step of the steady state, opened."""
    if service.steady is None or not service.steady.stable:
        return ()
    return (mean_step(service.replica, load_of(service.traffic), service.steady),)


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
    if service.replica.adapters is not None:
        lines.append(_adapted(service.replica, service.replica.adapters))
    if _below(service):
        lines.append(_found(run))
    if run.num_unfinished:
        lines.append(f"{run.num_unfinished:,} requests had not ended when the run did")
    return tuple(lines)


def _adapted(replica: Replica, adapters: Adapters) -> str:
    """What adapters take, and that nobody has one of his own."""
    missed = miss_fraction(adapters)
    fetched = f", {missed:.1%} of requests wait for theirs to be fetched" if missed else ""
    return (
        f"{adapters.resident:,} of {adapters.num:,} adapters of rank {adapters.rank} take "
        f"{fmt(resident_bytes(replica), 'bytes')} of each chip{fetched}; requests share them by popularity, "
        "expected values"
    )


def _below(service: Service) -> bool:
    """Whether some replica has a cache below its chips."""
    return any(
        pool.replica.host_cache_bytes or pool.replica.drive_cache_bytes for pool in service.fleet.pools
    )


def _found(run: ServingRun) -> str:
    """Where prompts found their prefixes."""
    if not run.hit_tokens:
        return "no prompt found a prefix in any cache: the caches below the chips had nothing to do"
    on_chip = run.hit_tokens - run.host_hit_tokens - run.drive_hit_tokens
    tiers = {"on the chip": on_chip, "on the host": run.host_hit_tokens, "on drives": run.drive_hit_tokens}
    shares = ", ".join(
        f"{tokens / run.prompt_tokens:.1%} {where}" for where, tokens in tiers.items() if tokens
    )
    found = run.hit_tokens / run.prompt_tokens
    return f"of {run.prompt_tokens:,} prompt tokens {found:.1%} were found in caches: {shares}"


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
