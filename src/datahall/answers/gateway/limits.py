"""Limits as they are asked for and shown, of a key and of a customer alike."""

from __future__ import annotations

from datahall.answer import Cell, Column
from datahall.scenario.sections.operations.gateway import KeyTerms
from datahall.serve.ledger.key import Limits
from datahall.serve.ledger.keys import after
from datahall.serve.ledger.money import usd

SEEN = "a gateway that runs here sees it within 50 ms"
COLUMNS = (
    Column("requests/min", "count"), Column("tokens/min", "tokens"), Column("at once", "count"),
    Column("budget", "usd"), Column("over"),
)  # fmt: skip


def limits_asked(asked: KeyTerms, was: Limits) -> Limits:
    """Those that are asked for, and the others as they were."""
    return after(was, asked.requests_per_minute, asked.minute_tokens, asked.parallel, asked.budget)


def shown(limits: Limits) -> tuple[Cell, ...]:
    """The cells of the columns."""
    budget = limits.budget_nano_usd
    return (
        limits.requests_per_minute or None, limits.tokens_per_minute or None, limits.parallel or None,
        usd(budget) if budget else None, limits.period,
    )  # fmt: skip
