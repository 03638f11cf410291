"""Measured collectives: published runs read, their machines understood, and our closed forms judged on them."""

from __future__ import annotations

from datahall.validation.collectives.rows import FORMATS, SICK, predict

__all__ = ["FORMATS", "SICK", "predict"]
