"""Notes of a simulated service: how long it ran and what of it was measured, and what stands beside the figures."""

from __future__ import annotations

from math import isfinite

from datahall.answers.serving.words import percent
from datahall.counted import counted
from datahall.errors import option
from datahall.inference.engine.adapters import miss_fraction, resident_bytes
from datahall.inference.engine.replica import Adapters, Replica
from datahall.inference.fleet.service import Outcome, Service
from datahall.inference.fleet.span import settled_s
from datahall.inference.simulation.run import ServingRun
from datahall.units import DAY_S, fmt
from datahall.workload.traffic.conversation import UnderWay


def run_notes(outcome: Outcome) -> tuple[str, ...]:
    run, service = outcome.run, outcome.service
    low, high = service.price.band
    first_low, first_high = service.replica.engine.band("TTFT")
    lines = [
        f"{run.num_finished:,} of {counted(run.num_arrived, 'request')} finished in {fmt(run.duration_s, 's', 3)} of "
        f"simulated time{_chosen(outcome)}; {run.num_measured:,} {_when(service)} were measured",
        *_too_short(outcome),
        f"of ten measured runs eight have a TPOT of {low:.2f} to {high:.2f} and a TTFT of {first_low:.2f} to "
        f"{first_high:.2f} of what is predicted; kernels of {service.replica.chip.name}: {service.price.level}",
    ]
    if service.under_way is not None:
        lines.append(_under_way(service.under_way))
    if service.users_over_s:
        lines.append(f"users begin one after the other, within {fmt(service.users_over_s, 's', 3)}")
    if run.num_measured:
        lines.append(
            f"requests of {counted(run.mean_prompt, 'token')} in and {run.mean_output:,} out on average "
            f"({traffic_name(service)})"
        )
    if run.num_rejected:
        lines.append(refused(run).rstrip("."))
    if service.replica.adapters is not None:
        lines.append(_adapted(service.replica, service.replica.adapters))
    if run.hit_tokens:
        lines.append(_prefix_hits(run))
    if run.num_unfinished:
        lines.append(unended(run).rstrip("."))
    return tuple(lines)


def _chosen(outcome: Outcome) -> str:
    """Why it is so long, where nobody said how long."""
    if not outcome.service.length_chosen or outcome.run.num_unfinished:  # an `until` may cut it
        return ""
    return ", which is long beside the time that one takes"


def _under_way(going: UnderWay) -> str:
    """That a run does not begin with an empty fleet."""
    kept = f"{fmt(going.remembered_s, 's', 3)} old" if going.remembered_s < DAY_S else "more than a day old"
    caches = f"caches have what is at most {kept}" if going.remembered_s else "caches have nothing of them"
    return f"conversations are under way when the run begins, and {caches}, in closed form"


def _when(service: Service) -> str:
    """Which requests are measured."""
    window = service.window
    start = f"after the first {fmt(window.start_s, 's', 3)}" if window.start_s else ""
    if service.num_last:
        return f"that came {start} and are not of the last {service.num_last:,}"
    if isfinite(window.end_s):
        return f"that came {start} and before {fmt(window.end_s, 's', 3)}"
    return f"that came {start}" if start else "of them"


def _too_short(outcome: Outcome) -> tuple[str, ...]:
    """That a run has no middle, and what rates are of then; that it does not see a day."""
    run, arrivals = outcome.run, outcome.service.traffic.arrivals
    said = []
    if not run.drain_apart and run.num_measured:
        said.append(
            "requests come for less time than one takes, so rates are of the whole run, with its drain: "
            f"more {option('requests')} show what lasts"
        )
    going = outcome.service.under_way
    if going is not None and settled_s(outcome.service.traffic, going) > outcome.service.window.start_s:
        said.append(
            f"caches take {fmt(settled_s(outcome.service.traffic, going), 's', 3)} to settle, longer than half of the "
            f"time in which requests come: more {option('requests')} show what lasts"
        )
    if arrivals is not None and arrivals.is_daily and run.duration_s < DAY_S:
        said.append(
            f"the run sees less than a day, over which the load changes: a {option('duration')} of one shows all"
        )
    return tuple(said)


def service_notes(outcome: Outcome) -> tuple[str, ...]:
    service, lines = outcome.service, []
    if service.regions:
        lines.append("distances are one way; a request goes to its own region while that has room")
    if service.cache is not None:
        lines.append(
            "the cache stands in front of the router, in the region of the request; hit rates are those of a cache "
            "that has filled; what it does not answer has waited for every tier, which is in its TTFT and E2E"
        )
        lines.append("in the table of latencies an answer from the cache counts as 0 s per token")
    if outcome.run.scaling is not None and len(service.fleet.pools) > 1:
        lines.append("only the first pool is scaled")
    return tuple(lines)


def _adapted(replica: Replica, adapters: Adapters) -> str:
    """What adapters take, and that nobody has one of his own."""
    missed = miss_fraction(adapters)
    fetched = f", {percent(missed, 1)} of requests wait for theirs to be fetched" if missed else ""
    return (
        f"{adapters.resident:,} of {adapters.num:,} adapters of rank {adapters.rank} take "
        f"{fmt(resident_bytes(replica), 'bytes')} of each chip{fetched}; requests share them by popularity, "
        "expected values"
    )


def _prefix_hits(run: ServingRun) -> str:
    """Where prompts found their prefixes."""
    shares = ", ".join(f"{percent(share, 1)} {where}" for where, share in run.hit_fractions.items())
    found = percent(run.hit_fraction, 1)
    return f"of {run.prompt_tokens:,} prompt tokens {found} were found in caches: {shares}"


def refused(run: ServingRun) -> str:
    if not run.num_rejected:
        return ""
    return f"{run.num_too_long:,} requests were longer than the context, {run.num_too_large:,} larger than any cache."


def unended(run: ServingRun) -> str:
    if not run.num_unfinished:
        return ""
    return f"{counted(run.num_unfinished, 'request')} had not ended when the run did."


def traffic_name(service: Service) -> str:
    return " + ".join(stream.traffic.name for stream in service.streams)
