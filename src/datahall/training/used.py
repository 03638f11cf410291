"""What a run was computed with, by the attributes of inputs: what was said, and what is usual where nobody said it.

An input that had nothing to act on is left out: the order of a pipeline of one stage, experts of a model without.
"""

from __future__ import annotations

from typing import TypeAlias

from datahall.training.layout.asked import INPUTS
from datahall.training.layout.columns import Space
from datahall.training.layout.layout import Layout
from datahall.training.step.framework import Framework
from datahall.training.step.step import Job

Used: TypeAlias = dict[str, str | int | float | bool]


def used_by_job(job: Job, framework: Framework, precision: str) -> Used:
    """Of the job; of the machine it runs on: `cluster/used.py`."""
    state = job.books(framework).state
    return {
        "seq": job.seq,
        "global_batch": job.global_batch,
        "precision": precision,
        **({"state": state} if state else {}),
        **_used_by_adapters(job),
    }


def _used_by_adapters(job: Job) -> Used:
    if job.adapters is None:
        return {}
    quantised: Used = {"quantised": True} if job.adapters.quantised else {}
    return {"lora": job.adapters.rank, "lora_targets": job.adapters.targets, **quantised}


def used_by_layout(layout: Layout, schedule: str, *, experts: bool) -> Used:
    """Of the layout."""
    staged = layout.pp > 1
    acts = {
        "vpp": staged,
        "ep": experts,
        "etp": experts,
        "context_exchange": layout.cp > 1,
        "zero": bool(Space.of(layout).is_shared[0]),
    }
    values = {name: getattr(layout, name) for name in INPUTS if acts.get(name, True)}
    said = {
        name: value for name, value in values.items() if name == "zero" or value not in (0, "", "none", ())
    }
    plain = {
        name: " ".join(map(str, value)) if isinstance(value, tuple) else value for name, value in said.items()
    }
    return {**plain, **({"schedule": schedule} if staged else {})}
