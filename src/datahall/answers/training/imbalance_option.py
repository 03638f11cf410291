"""How unevenly routed tokens are taken to be spread: what somebody asks for, and how it is said back."""

from __future__ import annotations

import numpy as np

from datahall.errors import ScenarioError, UnitError
from datahall.training.layout.layout import Layout
from datahall.training.step.experts import busiest_load
from datahall.training.step.micro_batch import sharding_of
from datahall.training.step.step import Job
from datahall.units import parse


def read_imbalance(value: str | float | None) -> float | None:
    """Copies on the busiest rank of an expert group over the mean, as --imbalance gives it; None: chance alone.

    >>> read_imbalance("1.2"), read_imbalance("")
    (1.2, None)
    """
    if value is None or value == "":
        return None
    try:
        ratio = parse(value, "ratio")
    except UnitError as error:
        raise ScenarioError(
            f"--imbalance: {error.message}", hint="busiest rank over the mean, e.g. --imbalance 1.2"
        ) from error
    if ratio < 1.0 or not np.isfinite(ratio):
        raise ScenarioError(
            f"--imbalance is {value}; the busiest rank has at least the mean",
            hint="1 is perfectly even; leave the option out for the scatter of chance alone",
        )
    return ratio


def imbalance_notes(job: Job, layout: Layout) -> tuple[str, ...]:
    """What was taken for granted of the routing; nothing where no experts are spread."""
    if job.model.moe is None or layout.ep == 1:
        return ()
    load = float(np.ravel(busiest_load(job, sharding_of(layout), float(layout.micro_batch)))[0])
    why = "as asked" if job.imbalance is not None else "chance alone, as where routing is forced even"
    return (
        f"the busiest of {layout.ep} expert ranks has {load:.3f} of the mean load ({why}); a router that nothing holds "
        "even cost Qwen3-235B 8 to 20 % of its rate (NVIDIA, H100): --imbalance 1.2 and the like",
    )
