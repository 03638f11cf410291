"""The ledger: public measurements predicted again, and the error said out loud.

A domain is a set of file formats told apart by their columns; a new one is a module with `FORMATS`.
"""

from __future__ import annotations

from datahall.validation.ledger import DOMAINS, validate
from datahall.validation.scorecard import Score, Scorecard

__all__ = ["DOMAINS", "Score", "Scorecard", "validate"]
