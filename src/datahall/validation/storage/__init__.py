"""Published runs of MLPerf Storage: utilisation of emulated chips, judged in points."""

from __future__ import annotations

from datahall.validation.storage.rows import FORMATS, NOTES

__all__ = ["FORMATS", "NOTES"]
