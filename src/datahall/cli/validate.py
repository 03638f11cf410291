"""`datahall validate`: our error on public measurements."""

from __future__ import annotations

import click

from datahall.cli.question import Scored, question


@question(
    None,
    "validate",
    examples="""
    datahall validate kernels
    datahall validate kernels --data my-gemm.csv --format md
    """,
    catalog=False,
)
@click.argument("domain", metavar="DOMAIN")
@click.option(
    "--data", multiple=True, metavar="FILE", help="Score this CSV instead of the shipped measurements."
)
def command(domain: str, data: tuple[str, ...]) -> Scored:
    """Predict measured rows again and say how far off we are.

    DOMAIN is kernels: matrix products, attention, experts, element-wise work and whole forward passes.
    """
    from datahall.report.wire import encode_scorecard
    from datahall.show.scorecard import scorecard_answer
    from datahall.validation.ledger import validate

    card = validate(domain, list(data) or None)
    return Scored(scorecard_answer(card, ", ".join(data)), encode_scorecard(card))
