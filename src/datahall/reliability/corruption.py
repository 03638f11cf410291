"""Silent data corruption: how often a device computes wrongly, when it is noticed, and what going back costs.

What was computed since the first wrong step is thrown away: a run goes back to the last checkpoint before it, so a
detection that comes late costs itself, and keeps as many checkpoints as it is late.
"""

from __future__ import annotations

from typing import NamedTuple

from datahall.errors import ScenarioError
from datahall.reliability.process import FailureProcess
from datahall.scenario.words import DETECTORS, Detector
from datahall.units import DAY_S

# assumptions, for nobody published them
UNNOTICED_S = 12 * 3600.0  # until somebody sees it in the loss
CHECKSUM_FRACTION = 0.02  # of the time of a step: row and column sums beside each matrix product
BISECT_S = 1800.0  # to find the device: halve the job, run again, compare


class Detection(NamedTuple):
    """A way to notice a wrong result."""

    method: Detector
    delay_s: float  # in the mean, from the wrong step until it is noticed
    overhead_fraction: float  # of the time of a step
    finds_device: bool  # whether it says which device it was


def detection(
    method: Detector,
    step_s: float,
    *,
    every_steps: int,
    num_replicas: int = 2,
    unnoticed_s: float = UNNOTICED_S,
) -> Detection:
    """How late and at what cost a method notices.

        none        in the loss, after `unnoticed_s`
        replay      one step in k is computed again: k/2 steps late, 1/k of the time
        checksum    sums beside each product: within the step, 2 % of the time
        vote        replicas compute the same and compare: within the step, (V − 1) of the time more

    Parameters: method; time of a step [s]; steps between two replays; replicas that vote (two notice, three say who).

    >>> detection("replay", 10.0, every_steps=100)
    Detection(method='replay', delay_s=500.0, overhead_fraction=0.01, finds_device=False)
    """
    if every_steps < 1 or num_replicas < 2:
        raise ScenarioError(
            f"every {every_steps} steps by {num_replicas} replicas nothing is compared",
            hint="at least every step, and two replicas",
        )
    match method:
        case "none":
            return Detection(method, unnoticed_s, 0.0, False)
        case "replay":
            return Detection(method, every_steps * step_s / 2.0, 1.0 / every_steps, False)
        case "checksum":
            return Detection(method, step_s, CHECKSUM_FRACTION, True)
        case "vote":
            return Detection(method, step_s, num_replicas - 1.0, num_replicas > 2)


def corruptions_per_day(process: FailureProcess) -> float:
    """Wrong results that were noticed and stopped a job, per day: what the preset counted as corruption.

    >>> from datahall.catalog import load
    >>> from datahall.reliability.process import process_of
    >>> round(corruptions_per_day(process_of(load().failure_preset("llama-3"), load(), 2048)) * 54, 1)
    6.0
    """
    rate = sum(one.rate_per_node_day for one in process.causes if one.component == "corruption")
    return process.num_nodes * rate


class Corrupted(NamedTuple):
    """What silent corruption costs a run."""

    loss_s: float  # of one event
    lost_fraction: float  # of the wall time, with what noticing it takes
    steps_per_day: float  # wrong steps that a day computes before they are noticed


def corrupted(
    per_day: float,
    found: Detection,
    step_s: float,
    *,
    interval_s: float,
    restart_s: float,
    bisect_s: float = BISECT_S,
) -> Corrupted:
    """What silent corruption costs: all since the last good checkpoint, a restart, and finding the device.

        loss = delay + interval / 2 + restart + bisect
        share = overhead / (1 + overhead) + events per day · loss / day

    Parameters: corruptions per day; how they are noticed; time of a step, between checkpoints, of a restart, to find
    the device where the method does not say it [s].

    >>> late, soon = (detection(how, 5.0, every_steps=100) for how in ("none", "replay"))
    >>> [round(corrupted(0.11, how, 5.0, interval_s=600.0, restart_s=300.0).lost_fraction, 3) for how in (late, soon)]
    [0.058, 0.013]
    """
    loss_s = found.delay_s + interval_s / 2.0 + restart_s + (0.0 if found.finds_device else bisect_s)
    lost = found.overhead_fraction / (1.0 + found.overhead_fraction) + per_day * loss_s / DAY_S
    return Corrupted(loss_s, min(1.0, lost), per_day * found.delay_s / step_s)


class Noticed(NamedTuple):
    """A way to notice corruption, and what it then costs a run."""

    by: Detection
    cost: Corrupted


def ways_to_notice(
    process: FailureProcess, step_s: float, *, every_steps: int, interval_s: float, restart_s: float
) -> tuple[Noticed, ...]:
    """Every way to notice corruption of the same run, side by side."""
    per_day = corruptions_per_day(process)
    ways = [detection(method, step_s, every_steps=every_steps) for method in DETECTORS]
    return tuple(
        Noticed(way, corrupted(per_day, way, step_s, interval_s=interval_s, restart_s=restart_s))
        for way in ways
    )
