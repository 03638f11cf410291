"""`gateway top`: what a gateway that runs does now, by model, key, customer and upstream."""

from __future__ import annotations

from collections.abc import Iterator

from datahall.answer import Answer, Cell, Column, Table
from datahall.answers.follow import follow
from datahall.answers.gateway.secret import secret_in
from datahall.counted import counted
from datahall.errors import ServingError
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.gateway import Endpoint
from datahall.serve.top.latency import Latency
from datahall.serve.top.moment import Moment, Rate
from datahall.serve.top.reading import Left
from datahall.serve.top.watch import Watch
from datahall.units import fmt

USUAL_URL = "http://127.0.0.1:8080"
ONCE_S, LIVE_S = 1.0, 10.0  # windows
EVERY_S = 1.0  # that a view is drawn again
SHARES = {"p50": 0.5, "p99": 0.99}

# of models and keys alike
LATENCIES = tuple(Column(f"{what} {share}", "s") for what in ("TTFT", "whole") for share in SHARES)
MONEY = (
    Column("spends", "usd_per_hour", "charged_usd_per_hour"),
    Column("charged", "usd", "charged_usd"),
)


def gateway_top(scenario: Scenario) -> Answer:
    """Look twice, and say what happened between."""
    asked = scenario.one(Endpoint)
    window_s = asked.window_s or ONCE_S
    watch = _watch(asked, window_s)
    moment = None
    while moment is None:  # again where the gateway was started anew between the two
        watch.look()
        watch.pause(window_s)
        watch.look()
        moment = watch.moment()
    return _view(scenario, watch.authority, moment)


def gateway_tops(scenario: Scenario) -> Iterator[Answer]:
    """One view after another, without an end; one that cannot be had says why, but for the first."""
    asked = scenario.one(Endpoint)
    window_s = asked.window_s or LIVE_S
    watch = _watch(asked, window_s)
    watch.look()
    while True:
        watch.pause(min(EVERY_S, window_s))
        try:
            watch.look()
        except ServingError as error:
            yield _silent(watch.authority, error)
            continue
        moment = watch.moment()
        yield _begun(watch.authority) if moment is None else _view(scenario, watch.authority, moment)


def _watch(asked: Endpoint, window_s: float) -> Watch:
    return Watch(asked.url or USUAL_URL, secret_in(asked.key_from), window_s)


def _silent(authority: str, error: ServingError) -> Answer:
    return Answer(
        kind="top",
        headline=f"{authority} does not answer any more: {error.message}.",
        verdict="no",
        notes=("it is asked again every second",),
    )


def _begun(authority: str) -> Answer:
    return Answer(kind="top", headline=f"{authority} has been started again.")


def _view(scenario: Scenario, authority: str, moment: Moment) -> Answer:
    rate = moment.all
    return Answer(
        kind="top",
        headline=f"{authority}, up {fmt(moment.up_s, 's', 3)}: {_doing(moment)}",
        results={
            "window_s": moment.took_s,
            "up_s": moment.up_s,
            "requests_per_s": rate.requests_per_s,
            "failed_per_s": rate.failed_per_s,
            "refused_per_s": moment.refused_per_s,
            **_latencies("ttft", rate.first),
            **_latencies("whole", rate.whole),
            "tokens_per_s": rate.tokens_per_s,
            "output_tokens_per_s": rate.output_tokens_per_s,
            "num_open": int(moment.num_open),
            "num_waiting": int(moment.num_waiting),
            "charged_usd_per_hour": rate.charged_usd_per_hour,
            "charged_usd": rate.charged_usd,
            "memory_bytes": moment.memory_bytes,
        },
        tables=tuple(
            one
            for one in (
                _models(moment),
                _keys(moment),
                _customers(moment),
                _upstreams(moment),
                _refused(moment),
            )
            if one.rows
        ),
        notes=_notes(moment),
        next_commands=(follow(scenario, "gateway bill"),),
    )


def _doing(moment: Moment) -> str:
    rate = moment.all
    failed = f", {fmt(rate.failed_per_s, 'per_s', 3)} failed" if rate.failed_per_s else ""
    line = f", {moment.num_waiting:,.0f} waiting" if moment.num_waiting else ""
    first = rate.first.at(SHARES["p50"])
    latency = f"; TTFT {fmt(first, 's', 3)} at the median" if first is not None else ""
    return (
        f"{counted(int(moment.num_open), 'open request')}{line}, {fmt(rate.requests_per_s, 'per_s', 3)} ended"
        f"{failed}{latency}; {fmt(rate.charged_usd, 'usd')} since it began."
    )


def _models(moment: Moment) -> Table:
    columns = (
        Column("model"), Column("requests", "per_s"), *LATENCIES, Column("output", "tokens_per_s"),
        Column("waiting", "count"), Column("failed", "per_s"), *MONEY,
    )  # fmt: skip
    rows = tuple(
        (
            name, rate.requests_per_s, *_ends(rate), rate.output_tokens_per_s,
            int(moment.num_waiting_for.get(name, 0.0)), rate.failed_per_s, rate.charged_usd_per_hour, rate.charged_usd,
        )
        for name, rate in moment.models.items()
    )  # fmt: skip
    return Table(title="models", columns=columns, rows=rows)


def _keys(moment: Moment) -> Table:
    columns = (
        Column("key"), Column("customer"), Column("requests", "per_s"), *LATENCIES, Column("tokens", "tokens_per_s"),
        Column("failed", "per_s"), *MONEY,
    )  # fmt: skip
    rows = tuple(
        (
            name, customer, rate.requests_per_s, *_ends(rate), rate.tokens_per_s, rate.failed_per_s,
            rate.charged_usd_per_hour, rate.charged_usd,
        )
        for (name, customer), rate in moment.keys.items()
    )  # fmt: skip
    return Table(title="keys", columns=columns, rows=rows)


def _customers(moment: Moment) -> Table:
    """By all of their keys, where that says more than the keys do."""
    columns = (
        Column("customer"), Column("requests", "per_s"), *LATENCIES, Column("tokens", "tokens_per_s"),
        Column("failed", "per_s"), *MONEY, Column("budget", "usd"), Column("left", "usd"),
        Column("requests left", "count"), Column("tokens left", "tokens"),
    )  # fmt: skip
    is_more = bool(moment.left) or len(moment.customers) < len(moment.keys)
    nothing = Left(budget_usd=None, budget_left_usd=None, num_requests=None, num_tokens=None)
    rows = []
    for name, rate in moment.customers.items() if is_more else ():
        left = moment.left.get(name, nothing)
        rows.append(
            (
                name, rate.requests_per_s, *_ends(rate), rate.tokens_per_s, rate.failed_per_s,
                rate.charged_usd_per_hour, rate.charged_usd, left.budget_usd, left.budget_left_usd,
                _whole(left.num_requests), _whole(left.num_tokens),
            )
        )  # fmt: skip
    return Table(title="customers", columns=columns, rows=tuple(rows))


def _whole(count: float | None) -> int | None:
    return None if count is None else int(count)


def _upstreams(moment: Moment) -> Table:
    columns = (
        Column("upstream"), Column("may be asked"), Column("open", "count"), Column("waits there", "count"),
        Column("KV used", "fraction"), Column("failed since it began", "count"),
    )  # fmt: skip
    rows = tuple(
        (
            name, "yes" if one.is_ready else "no", int(one.num_open), int(one.num_waiting), one.kv_used_fraction,
            int(one.num_failed),
        )
        for name, one in moment.upstreams.items()
    )  # fmt: skip
    return Table(title="upstreams", columns=columns, rows=rows)


def _refused(moment: Moment) -> Table:
    rows = tuple((code, rate) for code, rate in moment.refused_for_per_s.items() if rate > 0.0)
    return Table(title="refused", columns=(Column("why"), Column("requests", "per_s")), rows=rows)


def _ends(rate: Rate) -> tuple[Cell, ...]:
    return tuple(of.at(share) for of in (rate.first, rate.whole) for share in SHARES.values())


def _latencies(name: str, of: Latency) -> dict[str, Cell]:
    return {f"{name}_{share}_s": of.at(fraction) for share, fraction in SHARES.items()}


def _notes(moment: Moment) -> tuple[str, ...]:
    notes = [
        f"rates and latencies are of {fmt(moment.took_s, 's', 3)}; latencies lie between the bounds of histograms"
    ]
    if moment.is_unwritten:
        notes.append("what is used cannot be written to the disk: the gateway's log says why")
    return tuple(notes)
