"""Replicas, counts and shares in words."""

from __future__ import annotations

from collections.abc import Iterable

from datahall.answer import Cell
from datahall.answers.serving.recorded import recorded
from datahall.breakdown import Breakdown
from datahall.cluster.cluster import stands_on_torus
from datahall.cluster.wiring import wiring_of
from datahall.counted import counted
from datahall.inference.engine.asked import implied_chip
from datahall.inference.engine.replica import Replica, joined
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.demand import Demand
from datahall.planner.serving.mixed.mixture import Mixture
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.fabric import FabricDesign
from datahall.units import fmt, short

ALL_FRACTION = 0.9995  # and more is said to be all
# what ends a replica's load, for a person
BINDS = {
    "TPOT": "the time per token",
    "TTFT": "the time to the first token",
    "cache": "the room for keys and values",
    "sequences": "the engine's limit of sequences",
    "budget": "the engine's token budget",
}


def implied(scenario: Scenario) -> tuple[str, ...]:
    """That a fabric brought its chip, where nobody named one."""
    chip = implied_chip(scenario)
    if chip is None:
        return ()
    return (f"no chip was said: {chip.title}, which {scenario.one(FabricDesign).topology} is made of",)


def all_at_the_worst(scenario: Scenario, replicas: Iterable[tuple[Replica, int]]) -> tuple[str, ...]:
    """That replicas which cross the network all stand where a failure leaves least of it; each with how many."""
    if not wiring_of(scenario).failures:
        return ()
    slowed = [
        found.system is not None and found.span > found.system.num_domain and count > 1
        for found, count in ((joined(replica), count) for replica, count in replicas)
    ]
    if not any(slowed):
        return ()
    return ("every replica is taken to stand where the failure leaves least; those elsewhere are faster",)


def on_switches(replicas: Iterable[Replica]) -> tuple[str, ...]:
    """That replicas of chips which stand on a torus as they are sold were timed as if a switch joined them."""
    own = [one.chip for one in replicas if one.num_chips > 1 and stands_on_torus(one.chip)]
    if not own:
        return ()
    return (
        f"{own[0].title} is wired to its neighbours, a torus, which serving does not know: what its chips exchange is "
        "timed as if a switch joined them",
    )


def wanted_by(demand: Demand) -> str:
    """Who asks, and how much of it comes."""
    if demand.users:
        pause = f" and {fmt(demand.think_s, 's') if demand.think_s else 'no pause'} between answers"
        pace = (
            f"at {short(demand.reading_tokens_per_s)} tokens/s each"
            if demand.reuse is None
            else "in conversations"
        )
        return f"{counted(demand.users, 'user')} {pace}{pause}"
    who = fmt(demand.rate_per_s, "requests/s")
    return who if demand.stretch is None else f"{who}{recorded(demand.stretch)},"


def full_load(best: Candidate | Mixture) -> str:
    """The load with the headroom used up; from twice the demand on as a multiple of it."""
    more = best.more_load_fraction
    if more >= 1:
        return f"at {fmt(best.full_load_ratio, 'ratio')} the load"
    return f"at {percent(more)} more load" if percent(more) != percent(0.0) else "at that load"


def percent(share: float, decimals: int = 0) -> str:
    """A share as a percentage with so many decimals.

    >>> percent(0.1234), percent(0.1234, 1)
    ('12 %', '12.3 %')
    """
    return f"{share:.{decimals}%}".replace("%", " %")


def shown_share(share: float) -> str:
    """A share as a percentage with the digits that it has.

    >>> shown_share(0.95), shown_share(0.9999)
    ('95 %', '99.99 %')
    """
    return f"{fmt(share, 'percentile').removeprefix('P')} %"


def all_cut(share: float, prompt: float, output: float, context: int) -> str:
    """A sentence of a headline where no request, or next to none, is served whole.

    >>> all_cut(0.5, 300.0, 200.0, 500), all_cut(1.0, 300.0, 200.0, 500)
    ('', ' All requests are cut to the context of 500 tokens: to 300 in and 200 out on average.')
    """
    if share < ALL_FRACTION:
        return ""
    return (
        f" All requests are cut to the context of {context:,} tokens: to {prompt:,.0f} in and {output:,.0f} out on "
        "average."
    )


def layout_words(replica: Replica, precision: str) -> str:
    """How a replica is divided, e.g. "tp 4, fp8"."""
    degrees = [
        f"{name} {getattr(replica, name)}" for name in ("tp", "pp", "dp", "ep") if getattr(replica, name) > 1
    ]
    return ", ".join((*degrees, precision)) if degrees else f"1 chip, {precision}"


def described(replica: Replica, precision: str) -> str:
    """A replica in a sentence."""
    return f"{replica.num_chips} × {replica.chip.title} ({layout_words(replica, precision)}, {replica.engine.name})"


def banded(key: str, figure: Breakdown | None) -> dict[str, Cell]:
    """A time and the ends of its band, as results; None where there is no such time."""
    band = figure.band if figure is not None else None
    return {
        f"{key}_s": figure.value if figure is not None else None,
        f"{key}_low_s": band.low if band is not None else None,
        f"{key}_high_s": band.high if band is not None else None,
    }
