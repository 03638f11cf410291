"""Traces of clusters played again: waits under our policy, and as a check the chips held at the trace's own starts."""

from __future__ import annotations

from datahall.scheduling.files.traces import LAYOUTS
from datahall.validation.measurement import Format
from datahall.validation.scheduling.replay import predict

NOTES = (
    "mean wait: of tenths of a trace's jobs under backfill, which knows neither users' shares nor nodes that were down",
    "a predicted wait below 1 s, the least that a trace tells, counts as 1 s",
)
FORMATS = (
    *(Format(one.title, frozenset(one.needs), predict) for one in LAYOUTS),
    Format("Slurm accounting (sacct)", frozenset({"JobID", "State", "Start"}), predict),
)
