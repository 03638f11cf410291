"""Traces of clusters played again: chips held over time at the trace's own starts, and waits under our policies."""

from __future__ import annotations

from datahall.scheduling.files.traces import LAYOUTS
from datahall.validation.measurement import Format
from datahall.validation.scheduling.replay import predict

FORMATS = (
    *(Format(one.title, frozenset(one.needs), predict) for one in LAYOUTS),
    Format("Slurm accounting (sacct)", frozenset({"JobID", "State", "Start"}), predict),
)
