"""The ledger: public measurements predicted again, and the error said out loud.

A domain is a word of `DOMAINS` and a folder of that name, whose `FORMATS` are told apart by their columns; `NOISE` is
there where its runs were repeated, `NOTES` where there is more to say of its figures.
"""

from __future__ import annotations

from datahall.validation.ledger import LEDGER, validate
from datahall.validation.scorecard import Score, Scorecard

__all__ = ["LEDGER", "Score", "Scorecard", "validate"]
