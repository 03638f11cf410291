"""`simulate serve`: requests meet a fleet, and every step of every engine is simulated."""

from __future__ import annotations

from math import isfinite

from datahall.answer import Answer, Cell
from datahall.answers.context import context_notes
from datahall.answers.follow import follow, has_several, our_error
from datahall.answers.reply import Traced
from datahall.answers.serving.group_tables import group_tables, scaling_charts, scaling_table
from datahall.answers.serving.idle import cut_run, idle_in_run
from datahall.answers.serving.simulation_notes import refused, run_notes, service_notes, unended
from datahall.answers.serving.simulation_tables import (
    SHARES,
    crosscheck_table,
    known,
    latency_chart,
    latency_table,
    queue_charts,
    replica_table,
)
from datahall.answers.serving.words import (
    all_at_the_worst,
    all_cut,
    banded,
    described,
    implied,
    on_switches,
    percent,
    shown_share,
)
from datahall.breakdown import Source
from datahall.cluster.used import used_by_groups
from datahall.counted import counted
from datahall.errors import ScenarioError, option
from datahall.events import perfetto
from datahall.inference.fleet.figure import tpot_figure, ttft_figure
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.fleet.response_cache import hit_rates
from datahall.inference.fleet.service import Outcome, Service, service_of, simulate_service
from datahall.inference.fleet.span import is_at_once
from datahall.inference.fleet.summary import (
    all_ended_s,
    enough_replicas,
    mean_use,
    recomputed_tokens,
    scaling_use,
)
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.deployment import Deployment
from datahall.units import fmt, short

TRACED_S = 30.0  # of the run that a timeline shows
TOLD_FROM_ONE = 1.005  # a ratio that three digits write otherwise


def simulate_serve(scenario: Scenario) -> Traced:
    """Latency percentiles, goodput, throughput, cache and queue of a fleet under traffic."""
    outcome = simulate_service(service_of(scenario), trace_s=TRACED_S, watch=True)
    return Traced(_answer(scenario, outcome), lambda: _trace(outcome))


def prepare(scenario: Scenario) -> None:
    """Make the service and read its traces, without running it."""
    for stream in service_of(scenario).streams:
        if stream.traffic.trace is not None:
            stream.traffic.trace.read()


def _trace(outcome: Outcome) -> bytes:
    """The first seconds of the run as a Perfetto trace: a track per replica, a slice per step or leap."""
    if outcome.run.trace is None:
        raise ScenarioError("nothing was simulated", hint="a trace with at least one request")
    kinds = {0: "decode", 1: "decode + prompts", 2: "prompts"}
    tracks = {place: f"replica {place}" for place in range(outcome.service.fleet.num_replicas)}
    return perfetto(outcome.run.trace, kinds, tracks)


def _answer(scenario: Scenario, outcome: Outcome) -> Answer:
    """What happened, in the order a person asks."""
    run, service = outcome.run, outcome.service
    scaling = run.scaling
    return Answer(
        kind="serving run",
        inputs=_inputs(scenario, service),
        headline=(f"{scenario.name}: " if scenario.name else "") + _headline(outcome) + _cut(outcome),
        binding=_binding(outcome),
        verdict="yes" if outcome.keeps_limits else "no",
        results=_results(outcome),
        tables=(
            *((latency_table(run, service.promise),) if run.num_measured else ()),
            *group_tables(outcome),
            replica_table(outcome),
            *((scaling_table(outcome, scaling),) if scaling is not None else ()),
            *((crosscheck_table(outcome, service.steady),) if service.steady else ()),
        ),
        figure=tpot_figure(outcome),
        charts=(
            *((latency_chart(run),) if run.num_measured else ()),
            *(queue_charts(run.watched) if run.watched is not None else ()),
            *(scaling_charts(scaling) if scaling is not None else ()),
        ),
        notes=(
            *run_notes(outcome),
            *cut_run(scenario, outcome),
            *context_notes(service.replica.model, service.replica.max_context),
            *service_notes(outcome),
            *idle_in_run(scenario, outcome),
            *all_at_the_worst(scenario, [(pool.replica, pool.count) for pool in service.fleet.pools]),
            *implied(scenario),
            *on_switches(pool.replica for pool in service.fleet.pools),
        ),
        sources=_sources(service),
        next_commands=_next(scenario, outcome),
    )


def _inputs(scenario: Scenario, service: Service) -> dict[str, Cell]:
    """What follows from what was said: the group that was found, and what joins its chips."""
    fleet, replica = service.fleet, service.replica
    return {
        "model": service.model.name,
        "chip": fleet.pools[0].replica.chip.name,
        "tp": replica.tp,
        "replicas": fleet.num_replicas,
        **used_by_groups(scenario, [pool.joined for pool in fleet.pools]),
    }


def _headline(outcome: Outcome) -> str:
    run, service = outcome.run, outcome.service
    pools = " and ".join(
        f"{_many(service.fleet, pool)} of {described(pool.replica, precision)}"
        for pool, precision in zip(service.fleet.pools, service.precisions, strict=True)
    )
    title = service.model.title or service.model.name
    if not run.num_measured:
        done = "measured" if run.num_finished else "served"
        return f"No request was {done} {'of' if run.num_finished else 'by'} {title} on {pools}."
    if not run.stable:
        return (
            f"Overloaded: {title} on {pools} holds {short(run.sustained_per_s)} requests/s, and more come; the queue "
            f"reached {run.queue_peak:,} and grows."
        )
    if outcome.is_burst and service.steady is not None:
        return (
            f"Overloaded: to {title} on {pools} comes {_times(service.steady.use)} it holds in closed form; "
            f"the {counted(run.num_arrived, 'request')} of this run are too few to show it."
        )
    promise = service.promise
    limits = f"TTFT ≤ {fmt(promise.ttft_s, 's')} and TPOT ≤ {fmt(promise.tpot_s, 's')}"
    return (
        f"{'' if outcome.keeps_limits else 'No: '}{title} on {pools}: {percent(run.good_fraction, 1)} of requests "
        f"keep {limits}, where {shown_share(promise.percentile)} should. Half have their first token within "
        f"{fmt(run.ttft_s(0.5), 's', 3)}, 99 % within {fmt(run.ttft_s(0.99), 's', 3)}; "
        f"{short(run.output_tokens_per_s)} output tokens/s."
    )


def _times(use: float) -> str:
    """How much comes over what is held; a number that would read 1 is none."""
    return f"{short(use)} times what" if use >= TOLD_FROM_ONE else "a little more than what"


def _cut(outcome: Outcome) -> str:
    run = outcome.run
    if not run.num_measured:
        return ""
    context = max(stream.traffic.max_context for stream in outcome.service.streams)
    return all_cut(outcome.cut.fraction(run.num_arrived), run.mean_prompt, run.mean_output, context)


def _many(fleet: Fleet, pool: Pool) -> str:
    noun = "replica" if pool.role == "both" else f"{pool.role} replica"
    rule = fleet.autoscaling
    if rule is None or pool is not fleet.pools[0]:
        return counted(pool.count, noun)
    return f"{rule.least:,} to {counted(rule.most, noun)}"


def _binding(outcome: Outcome) -> str:
    run = outcome.run
    if not run.num_measured:
        return _unmeasured(outcome)
    busy, held, peak = mean_use(run)
    full = "; preemptions show that the cache is too small" if run.num_preempted else ""
    return (
        f"{_broken(outcome)}Replicas are busy {percent(busy)} of the time, their caches {percent(held)} full on "
        f"average and {percent(peak)} at most{full}."
    )


def _unmeasured(outcome: Outcome) -> str:
    """Why there is nothing to tell, and what would change it."""
    run, service = outcome.run, outcome.service
    ends = isfinite(service.until_s)
    longer = f"a later {option('until')}" if ends else f"more {option('requests')}"
    if not run.num_arrived:
        return f"None had come when the run ended, after {fmt(service.until_s, 's')}: {longer}."
    if run.num_finished:
        shorter = f"a shorter {option('warmup')}"
        ways = f"leave out {option('warmup')}" if is_at_once(service.traffic) else f"{longer}, or {shorter}"
        return (
            f"{counted(run.num_arrived, 'request')} came, all before the end of the warm-up, after "
            f"{fmt(service.window.start_s, 's')}: {ways}."
        )
    short = f"{unended(run).rstrip('.')}, after {fmt(service.until_s, 's')}: {longer}."
    return refused(run) or (short if ends and run.num_unfinished else unended(run))


def _broken(outcome: Outcome) -> str:
    """Which latency is beyond its limit at the percentile that was asked for."""
    if outcome.keeps_limits or not outcome.run.stable or outcome.is_burst:
        return ""
    promise = outcome.service.promise
    at = fmt(promise.percentile, "percentile")
    words = [
        f"{at} of {name} is {fmt(reached_s, 's', 3)} where {fmt(limit_s, 's')} was asked for"
        for name, reached_s, limit_s in outcome.beyond
    ]
    return f"{'; '.join(words) or f'Either limit is kept at {at}, both together are not'}. "


def _has_tiers(service: Service) -> bool:
    """Whether some replica has a cache below its chips."""
    pools = service.fleet.pools
    return any(pool.replica.host_cache_bytes or pool.replica.drive_cache_bytes for pool in pools)


def _results(outcome: Outcome) -> dict[str, Cell]:
    run, service = outcome.run, outcome.service
    latencies: dict[str, Cell] = {
        f"{name}_{key}_s": known(measure(share))
        for name, measure in (
            ("ttft", run.ttft_s),
            ("tpot", run.tpot_s),
            ("itl", run.itl_s),
            ("e2e", run.e2e_s),
        )
        for key, share in SHARES.items()
    }
    return {
        "num_chips": service.fleet.num_chips,
        "stable": run.stable,
        "keeps_limits": outcome.keeps_limits,
        "good_fraction": run.good_fraction if run.num_measured else None,
        "goodput_per_s": run.goodput_per_s,
        "requests_per_s": run.requests_per_s,
        "output_tokens_per_s": run.output_tokens_per_s,
        "prompt_tokens_per_s": run.prompt_tokens_per_s,
        **banded("ttft_mean", ttft_figure(outcome)),
        **banded("tpot_mean", tpot_figure(outcome)),
        **latencies,
        "num_arrived": run.num_arrived,
        "num_finished": run.num_finished,
        "num_rejected": run.num_rejected,
        "num_unfinished": run.num_unfinished,
        "num_preempted": run.num_preempted,
        "prefix_hit_tokens": run.hit_tokens,
        **(
            {"host_hit_tokens": run.host_hit_tokens, "drive_hit_tokens": run.drive_hit_tokens}
            if _has_tiers(service)
            else {}
        ),
        "cache_peak_fraction": mean_use(run)[2],
        "queue_mean": run.queue_mean,
        "queue_peak": run.queue_peak,
        "duration_s": run.duration_s,
        "sustained_per_s": known(run.sustained_per_s),
        **_group_results(outcome),
    }


def _group_results(outcome: Outcome) -> dict[str, Cell]:
    run, service = outcome.run, outcome.service
    found: dict[str, Cell] = {}
    if outcome.is_cut:
        found |= {"num_prompts_cut": outcome.cut.num_prompts, "num_answers_cut": outcome.cut.num_outputs}
        found["num_turns_left_out"] = outcome.cut.num_turns
    if service.records:
        found |= {"num_answered": run.num_answered, "num_rerouted": run.num_rerouted}
    if service.cache is not None:
        found["answered_fraction"] = known(run.answered_fraction)
        found["expected_answered_fraction"] = hit_rates(service.cache).total_fraction
        found["miss_wait_s"] = float(service.cache.tier_s[0])
    if service.fleet.outages:
        found["recomputed_tokens"] = recomputed_tokens(run)
    if run.scaling is not None:
        use = scaling_use(outcome, run.scaling)
        found |= {"replica_s": use.replica_s, "peak_replicas": use.most, "least_replicas": use.least}
    return found


def _sources(service: Service) -> tuple[Source, ...]:
    engines = [pool.replica.engine.source for pool in service.fleet.pools]
    traffic = [stream.traffic.source for stream in service.streams if stream.traffic.source is not None]
    return tuple(dict.fromkeys((*engines, *traffic)))


def _next(scenario: Scenario, outcome: Outcome) -> tuple[str, ...]:
    service = outcome.service
    if longer := _longer(scenario, outcome):
        return (follow(scenario, changes=longer),)
    if (more := enough_replicas(outcome)) is not None:
        if len(service.fleet.pools) == 1 and service.fleet.autoscaling is None and not has_several(scenario):
            return (follow(scenario, changes={"replicas": more}),)
        if scenario.given("rate") and not has_several(scenario):
            return (follow(scenario, changes={"rate": float(f"{outcome.run.sustained_per_s:.2g}")}),)
    if not outcome.run.num_measured:  # no rate and no lengths to plan for
        return (our_error(scenario, "inference"),)
    if has_several(scenario) or service.records:  # more than a plan can be asked for
        return (follow(scenario, changes={"seed": service.seed + 1}), our_error(scenario, "inference"))
    if service.replica.engine.batching != "continuous":  # of which there is a plan
        usual = {"engine": Deployment().engine, "batching": None, "wait": None}
        return (follow(scenario, changes=usual), our_error(scenario, "inference"))
    return (follow(scenario, "plan serve", _to_plan(outcome)), our_error(scenario, "inference"))


def _longer(scenario: Scenario, outcome: Outcome) -> dict[str, Plain | None]:
    """What makes the run of a question long enough; nothing where it is, or where more time would not help.

    It is too short where no request was measured, and where all come at once if it ends before they do: how many
    ended by then is no rate that lasts.
    """
    run = outcome.run
    given = [name for name in ("until", "warmup") if scenario.given(name)]
    if run.num_rejected:
        return {}
    if run.num_measured:
        cut = is_at_once(outcome.service.traffic) and run.num_unfinished and "until" in given
        return {"until": None} if cut and not has_several(scenario) else {}
    if not given:
        return {"warmup": fmt(0.0, "s")} if run.num_finished else {}
    if not has_several(scenario):
        return dict.fromkeys(given)
    return {
        "until": fmt(all_ended_s(outcome.service), "s"),
        "warmup": fmt(0.0, "s"),
    }  # in place of the file's


def _to_plan(outcome: Outcome) -> dict[str, Plain | None]:
    """What a plan of the same service is to weigh: its chip and format, and the lengths that were simulated."""
    run, service = outcome.run, outcome.service
    plan: dict[str, Plain | None] = {
        "chips": [service.replica.chip.name],
        "precision": list(dict.fromkeys(service.precisions)),
    }
    if service.replica.num_chips > service.replica.tp:
        plan["tp"] = None  # a group of ranks or stages, which a plan finds by itself
    at_one_time = service.traffic.trace is not None and not outcome.recorded_s
    if is_at_once(service.traffic) or at_one_time:
        plan["rate"] = float(f"{run.requests_per_s:.3g}")  # as many as ended
    if at_one_time:
        plan |= {"trace": None, "isl": run.mean_prompt, "osl": run.mean_output}
    return plan
