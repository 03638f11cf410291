"""Words of what a plan says of failures: of a training run, with its spares and checkpoints, and of a service."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from datahall.answer import Cell, Quantity
from datahall.answers.reliability.words import interruptions, rates_in_words
from datahall.answers.section import Row, Words
from datahall.counted import counted
from datahall.units import fmt

if TYPE_CHECKING:
    from datahall.reliability.sections.goodput import Goodput
    from datahall.reliability.sections.upkeep import Upkeep


def _spares(num: int, num_chips: int, goal: str) -> Row:
    of = f"of {counted(num_chips, 'chip')} each for those in repair, enough {goal}"
    return "spare nodes", Quantity(num, "count"), of


def _goal(section: Goodput | Upkeep) -> str:
    return f"{fmt(section.rates.enough_fraction, 'fraction')} of the time"


def _as_often(section: Goodput | Upkeep) -> str:
    return rates_in_words(section.process.preset, section.rates)


def _run(goodput: Goodput) -> tuple[Row, ...]:
    run, need = goodput.run, goodput.storage
    every = f"an interruption every {fmt(run.mttf_s, 's', 3)}, and a restart of {fmt(run.restart_s, 's', 3)}"
    rows: list[Row] = [("effective training time", Quantity(goodput.ettr, "fraction"), every)]
    if goodput.elapsed_s < inf:
        times = interruptions(goodput.num_interruptions)
        rows.append(("time of the run", Quantity(goodput.elapsed_s, "s"), f"expected, with {times}"))
    last = run.plan.last
    has = fmt(need.has_bytes_per_s, "bytes_per_s", 3)
    return (
        *rows,
        _spares(goodput.spares.num, run.job.num_server_chips, _goal(goodput)),
        (
            "checkpoint",
            Quantity(run.job.size.total_bytes, "bytes"),
            f"to {last.tier.title} every {fmt(last.interval_s, 's', 3)}",
        ),
        (
            "storage for checkpoints",
            Quantity(need.needs_bytes_per_s, "bytes_per_s"),
            f"at least, to write one in that time, of {has}",
        ),
    )


def _run_results(goodput: Goodput) -> dict[str, Cell]:
    run = goodput.run
    return {
        "ettr_fraction": goodput.ettr,
        "elapsed_s": _finite(goodput.elapsed_s),
        "num_interruptions": _finite(goodput.num_interruptions),
        "mttf_s": _finite(run.mttf_s),
        "restart_s": run.restart_s,
        "num_spares": goodput.spares.num,
        "checkpoint_bytes": run.job.size.total_bytes,
        "checkpoint_interval_s": run.plan.last.interval_s,
        "checkpoint_bytes_per_s": goodput.storage.needs_bytes_per_s,
    }


def _finite(value: float) -> float | None:
    return value if value < inf else None


def _service(upkeep: Upkeep) -> tuple[Row, ...]:
    lost = counted(upkeep.num_lost, "replica")
    every = (
        f"a node fails every {fmt(upkeep.mttf_s, 's', 3)} and takes {lost} for {fmt(upkeep.back_s, 's', 3)}"
    )
    beside = f"beside {counted(upkeep.num_spare, 'spare one')}, " if upkeep.num_spare else ""
    goal, added = f"{beside}so that as many as are needed serve {_goal(upkeep)}", upkeep.more_replicas
    more = (
        ("replicas to add", None, f"no number is enough {goal}")
        if added is None
        else ("replicas to add", Quantity(added.num, "count"), goal)
    )
    return (
        ("capacity lost to restarts", Quantity(upkeep.lost_fraction, "fraction"), every),
        more,
        _spares(upkeep.spares.num, upkeep.num_spare_chips, _goal(upkeep)),
    )


def _service_results(upkeep: Upkeep) -> dict[str, Cell]:
    return {
        "lost_fraction": upkeep.lost_fraction,
        "mttf_s": upkeep.mttf_s,
        "back_s": upkeep.back_s,
        "num_more_replicas": None if upkeep.more_replicas is None else upkeep.more_replicas.num,
        "num_spares": upkeep.spares.num,
    }


GOODPUT = Words(_run, _run_results, _as_often)
UPKEEP = Words(_service, _service_results, _as_often)
