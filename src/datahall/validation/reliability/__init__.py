"""Published failures: counts, rates, causes and effective training time, predicted from what other sources counted."""

from __future__ import annotations

from datahall.validation.reliability.rows import FORMATS

__all__ = ["FORMATS"]
