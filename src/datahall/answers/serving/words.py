"""Replicas, counts and shares in words."""

from __future__ import annotations

from datahall.inference.engine.replica import Replica
from datahall.inference.engine.speculation import OWN_LAYER
from datahall.scenario.kinds import Plain
from datahall.scenario.scenario import Scenario
from datahall.scenario.sections.traffic import USUAL_OUTPUT, USUAL_PROMPT

# what ends a replica's load, for a person
BINDS = {
    "TPOT": "the time per token",
    "TTFT": "the time to the first token",
    "cache": "the room for keys and values",
    "sequences": "the engine's limit of sequences",
    "budget": "the engine's token budget",
}


def counted(number: int, noun: str, *, times: bool = False) -> str:
    """A number of things: "1 user", "2 users"; with `times`, "2 × h200-sxm".

    >>> counted(1, "replica"), counted(1500, "replica"), counted(4, "h200-sxm", times=True)
    ('1 replica', '1,500 replicas', '4 × h200-sxm')
    """
    if times:
        return f"{number:,} × {noun}"
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def shown_share(share: float) -> str:
    """A share as a percentage with the digits that it has.

    >>> shown_share(0.95), shown_share(0.9999)
    ('95 %', '99.99 %')
    """
    return f"{100.0 * share:.6g} %"


def usual_lengths(scenario: Scenario) -> dict[str, Plain | None]:
    """Lengths that a question had without saying them, for one that would take others."""
    if any(scenario.given(name) for name in ("traffic", "isl", "osl", "trace")):
        return {}
    return {"isl": USUAL_PROMPT, "osl": USUAL_OUTPUT}


def drafted_by_itself(replica: Replica) -> tuple[str, ...]:
    """A note where a model drafts with a layer of its own: the catalogue does not say which models have one."""
    if replica.speculation is None or replica.speculation.draft != OWN_LAYER:
        return ()
    return (
        f"{replica.model.title or replica.model.name} is taken to have a layer for multi-token prediction, like its "
        "last one; which models were published with one is not in the catalogue",
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
