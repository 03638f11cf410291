"""What was used of a gateway in a month."""

from __future__ import annotations

from datahall.answer import Answer, Column, Table
from datahall.answers.follow import follow
from datahall.counted import counted
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.operations.gateway import Billed, GatewayState
from datahall.serve.ledger.bill import Line, by_customer, by_key, by_model, lines
from datahall.serve.ledger.desk import desk
from datahall.serve.ledger.period import month_of
from datahall.units import fmt

CENTS = "usd_to_the_cent"


def gateway_bill(scenario: Scenario) -> Answer:
    """Requests, tokens and money by customer, key and model; the three add up to the same."""
    with desk(scenario.one(GatewayState).state) as open_desk:
        month, span = month_of(scenario.one(Billed).month, open_desk.now_ns)
        totals = list(open_desk.store.totals(span.start_ns, span.end_ns))
        keys, _ = open_desk.store.keys()
    found = lines(totals, lambda _: "all")
    whole = found[0] if found else None
    charged_usd = whole.charged_usd if whole is not None else 0.0
    requests = whole.requests if whole is not None else 0
    notes = [
        "charged: at the price of the model that answered; spared: what the cache of answers kept from being paid"
    ]
    if whole is not None and whole.unsettled:
        notes.append(
            f"{counted(whole.unsettled, 'request')} charged what was reserved: a gateway was killed before the end"
        )
    return Answer(
        kind="bill",
        headline=f"{month}: {fmt(charged_usd, CENTS)} for {counted(requests, 'request')}."
        if totals
        else f"Nothing was used in {month}.",
        results={
            "month": month,
            "charged_usd": charged_usd,
            "num_requests": requests,
            "num_unsettled": whole.unsettled if whole is not None else 0,
            "saved_usd": whole.saved_usd if whole is not None else 0.0,
        },
        tables=(
            _table("customer", by_customer(totals, keys)),
            _table("key", by_key(totals, keys)),
            _table("model", by_model(totals)),
        )
        if totals
        else (),
        notes=tuple(notes) if totals else (),
        next_commands=(follow(scenario, "gateway keys list"),),
    )


def _table(of: str, some: tuple[Line, ...]) -> Table:
    columns = (
        Column(of), Column("requests", "count"), Column("prompt", "tokens"), Column("of it cached", "tokens"),
        Column("completion", "tokens"), Column("charged", CENTS, "charged_usd"), Column("spared", CENTS, "spared_usd"),
        Column("wasted", CENTS, "wasted_usd"),
    )  # fmt: skip
    rows = tuple(
        (
            line.name, line.requests, line.prompt, line.cached, line.completion, line.charged_usd, line.saved_usd,
            line.wasted_usd,
        )
        for line in some
    )  # fmt: skip
    return Table(title=f"by {of}", columns=columns, rows=rows)
