"""A simulated step as an account: every part beside the closed form, exchange seen and hidden, what waiting costs."""

from __future__ import annotations

import msgspec

from datahall.training.pipeline.execution import OF_WHICH, PART_NAMES, Execution

NOTHING = 1e-9  # share of a step below which a part is rounding


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a step; what is inside another part has no closed form of its own."""

    label: str
    simulated_s: float
    share_fraction: float
    closed_s: float | None = None
    difference_fraction: float | None = None  # of the simulated step


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of exchange of the heaviest stage."""

    name: str
    exposed_s: float
    hidden_s: float
    share_fraction: float  # of the step, what is exposed
    hidden_fraction: float | None  # of the exchange; None where there is none


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """One cost of synchronisation."""

    name: str
    time_s: float
    share_fraction: float


def parts_account(run: Execution) -> tuple[Part, ...]:
    """The parts that take any time, simulated and in closed form, and the step they add up to."""
    mine, closed, rows = run.parts, run.closed_parts, []
    for name, label in PART_NAMES.items():
        simulated_s, closed_s = float(getattr(mine, name)), float(getattr(closed, name))
        share = simulated_s / run.step_s
        if name in OF_WHICH:
            rows += [Part(label=label, simulated_s=simulated_s, share_fraction=share)] if simulated_s else []
        elif max(abs(simulated_s), abs(closed_s)) > NOTHING * run.step_s:
            rows.append(_beside(run, label, simulated_s, closed_s))
    return (*rows, _beside(run, "step", run.step_s, closed.step_s))


def _beside(run: Execution, label: str, simulated_s: float, closed_s: float) -> Part:
    return Part(
        label=label,
        simulated_s=simulated_s,
        share_fraction=simulated_s / run.step_s,
        closed_s=closed_s,
        difference_fraction=(simulated_s - closed_s) / run.step_s,
    )


def kernels_part(run: Execution) -> Part:
    """What the kernels take, however little that is of the step."""
    return _beside(run, PART_NAMES["kernels_s"], run.parts.kernels_s, run.closed_parts.kernels_s)


def largest_loss(run: Execution) -> Part:
    """The part beside the kernels that takes the most."""
    others = [name for name in PART_NAMES if name not in ("kernels_s", *OF_WHICH)]
    name = max(others, key=lambda name: float(getattr(run.parts, name)))
    lost_s = float(getattr(run.parts, name))
    return Part(label=PART_NAMES[name], simulated_s=lost_s, share_fraction=lost_s / run.step_s)


def largest_parts(run: Execution) -> tuple[Part, ...]:
    """The parts that take any time, the largest first."""
    taken = {name: float(getattr(run.parts, name)) for name in PART_NAMES if name not in OF_WHICH}
    ranked = sorted((name for name in taken if taken[name] > 0), key=lambda name: -taken[name])
    return tuple(
        Part(label=PART_NAMES[name], simulated_s=taken[name], share_fraction=taken[name] / run.step_s)
        for name in ranked
    )


def exchange_account(run: Execution) -> tuple[Exchange, ...]:
    """What of each exchange is seen and what runs beside kernels, and all of it together."""
    parts, hidden = run.parts, run.hidden_s
    exposed = {"tensor": parts.exchange_s, "messages": parts.messages_s, "data": parts.data_s}
    if run.stages.gathered_s:
        exposed["parameters"] = run.gathering_s
    rows = [(name, exposed[name], hidden[name]) for name in exposed]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    return tuple(
        Exchange(
            name=name,
            exposed_s=seen_s,
            hidden_s=hidden_s,
            share_fraction=seen_s / run.step_s,
            hidden_fraction=hidden_s / (seen_s + hidden_s) if seen_s + hidden_s else None,
        )
        for name, seen_s, hidden_s in rows
    )


def waiting_account(run: Execution) -> tuple[Waiting, ...]:
    """Barriers, messages, waiting in the pipeline's bubble, and work done again; all of it last."""
    parts = run.parts
    costs = {
        "barrier": parts.data_s + run.gathering_s + parts.slowest_s,
        "message": parts.exchange_s + parts.messages_s,
        "waiting": parts.bubble_s,
        "again": parts.redone_s,
    }
    costs["all"] = sum(costs.values())
    return tuple(
        Waiting(name=name, time_s=time_s, share_fraction=time_s / run.step_s)
        for name, time_s in costs.items()
    )


def idle_fractions(run: Execution) -> tuple[float, ...]:
    """By stage: the share of the slowest replica's time that it stands idle."""
    return tuple((run.slowest.idle_s / run.slowest.kernels_s).tolist())
