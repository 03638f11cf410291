"""The gateway before the replicas of a plan, as its file: what it lets through follows from what the plan promises.

at once  = dp · n + X · TTFT        n: the sequences of a rank with which a step takes the TPOT limit, or all it holds
in line  = offered · TTFT limit     who would wait longer than that limit has missed it anyhow
deadline = 2 · (TTFT limit + longest · TPOT limit)
price    = time of that kind of token · what a month costs / what its chips alone do
"""

from __future__ import annotations

from math import ceil

import numpy as np

from datahall.planner.artefacts.script import head
from datahall.planner.artefacts.serving import trtllm
from datahall.planner.artefacts.serving.service import Service, checkpoint_of, most_tokens
from datahall.planner.serving.candidate import Proposal
from datahall.planner.serving.confirm import TURNS_ROUTING
from datahall.serve.config.settings import ModelSettings, Settings, TargetSettings, UpstreamSettings
from datahall.serve.config.write import written
from datahall.serve.http import Timeouts
from datahall.serve.ledger.money import FREE, Price, nano_usd
from datahall.units import fmt

USUAL = ModelSettings(name="", targets=())
PORT = 8000  # of the first replica of a node, as launch commands have it
SLACK_RATIO = 2.0  # of the slowest that is promised: a request past it has failed, and is not merely late
FEW_SPREADS = 3.0  # standard deviations over the mean, beyond which no length of an answer is looked for
METRICS = {"vllm": "/metrics"}  # engines that show queue and cache, by which is routed, without being told to


def planned_gateway(service: Service) -> str:
    """The file of a gateway before all replicas, with what each of its numbers follows from."""
    settings = Settings(upstreams=_upstreams(service), models=(_model(service),))
    return "\n".join([*head(service.origin, (), _notes(service, settings)), "", written(settings)])


def _upstreams(service: Service) -> tuple[UpstreamSettings, ...]:
    engine, deadline_s, usual = service.replica.engine, _deadline_s(service), Timeouts()
    return tuple(
        UpstreamSettings(
            name=f"replica-{number + 1}",
            url=_url(service, number),
            most=num_at_once(service.best),
            health="/health",
            metrics=METRICS.get(engine.name, ""),
            timeouts=Timeouts(
                first_byte_s=max(usual.first_byte_s, deadline_s), total_s=max(usual.total_s, deadline_s)
            ),
        )
        for number in range(service.best.num_deployed)
    )


def _url(service: Service, number: int) -> str:
    """Where a replica listens: on the node and port that the launch command gives it, or on its first node."""
    beside = service.num_beside
    node, slot = divmod(number, beside) if beside else (number * service.num_replica_nodes, 0)
    return f"http://node-{node + 1}:{PORT + slot}/v1"


def _model(service: Service) -> ModelSettings:
    best = service.best
    promise = best.demand.promise
    return ModelSettings(
        name=best.replica.model.name,
        targets=tuple(
            TargetSettings(upstream=f"replica-{number + 1}", model=_called(service))
            for number in range(best.num_deployed)
        ),
        routing=TURNS_ROUTING if best.is_routed else USUAL.routing,
        queue_s=promise.ttft_s,
        most_waiting=ceil(best.full_rate_per_s * promise.ttft_s),
        longest_tokens=_longest_tokens(service),
        deadline_s=_deadline_s(service),
        price=_price(service),
    )


def _called(service: Service) -> str:
    """The model as an engine calls it that was started without another name."""
    replica = service.replica
    if replica.engine.name in trtllm.ITS_ENGINES:
        return trtllm.checkpoint(replica).hub.rpartition("/")[2] or replica.model.name
    return checkpoint_of(replica.model, replica, makes_blocks=True).hub or replica.model.name


def num_at_once(best: Proposal) -> int:
    """Requests of a replica with which it still writes as fast as is promised, or as many as its cache holds."""
    curve, limit_s = best.held.curve, best.demand.promise.tpot_s
    step_s = curve.step_s / best.held.load.tokens_per_step
    within = curve.decoding[step_s <= limit_s]
    kept = within[-1] if within.size else best.held_state.decoding
    if 0 < within.size < step_s.size:
        kept = np.interp(limit_s, step_s, curve.decoding)
    waiting = best.held_per_s * best.held_state.ttft_s
    return max(1, ceil(best.replica.dp * float(kept) + waiting))


def _longest_tokens(service: Service) -> int:
    """An answer whose length nobody says: as usual, or as long as answers of the plan are, or as a sequence may be."""
    load = service.best.demand.load
    long = ceil(load.output * (1.0 + FEW_SPREADS * load.output_spread))
    return min(max(USUAL.longest_tokens, long), most_tokens(service.replica))


def _deadline_s(service: Service) -> float:
    promise = service.best.demand.promise
    slowest_s = promise.ttft_s + _longest_tokens(service) * promise.tpot_s
    return min(round(SLACK_RATIO * slowest_s, 3), 86400.0)


def _price(service: Service) -> Price:
    """What each kind of token costs, with overheads, staff and idle time; nothing where nobody prices the chips."""
    costs, all_in = service.cost.costs, service.cost.all_in
    if costs is None or all_in is None:
        return FREE
    more = all_in.value / costs.blended.value
    found = {
        "input_nano_usd": costs.input.value * more,
        "output_nano_usd": costs.output.value * more,
        "cached_nano_usd": (costs.input if costs.cached is None else costs.cached).value * more,
    }
    return Price(**{name: nano_usd(f"{value:.6g}") for name, value in found.items()})


def _notes(service: Service, settings: Settings) -> list[str]:
    """What is to be put in, and what each number follows from."""
    best, promise = service.best, service.best.demand.promise
    (model,), cost = settings.models, service.cost
    hub = _called(service)
    named = "" if hub != model.name else "; named = what the engine calls the model, where that differs"
    priced = (
        f"what a million tokens cost by this plan, {cost.had.way.name}, with overheads"
        if model.price != FREE and cost.had is not None
        else f"none: {cost.why_not}"
    )
    return [
        *service.notes,
        "node-1, node-2, … stand for the hosts that the replicas run on: put their names or addresses in, or give them "
        f"those names{named}",
        f"concurrency: with more at once a replica breaks a TPOT of {fmt(promise.tpot_s, 's', 3)}, or lacks room",
        f"queue, queue_time: at {fmt(best.full_rate_per_s, 'requests/s', 3)} so many come within the limit of "
        f"{fmt(promise.ttft_s, 's', 3)} to the first token; who waits longer has missed it",
        f"deadline: twice what {model.longest_tokens:,} tokens take at the slowest that is promised",
        *(
            ["routing: a session stays where its history is; x-session-id or user says which it is"]
            if model.routing == "session"
            else []
        ),
        f"price: {priced}",
    ]
