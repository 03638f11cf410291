"""Replicas, counts and shares in words."""

from __future__ import annotations

from datahall.inference.engine.replica import Replica

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


def layout_words(replica: Replica, precision: str) -> str:
    """How a replica is divided, e.g. "tp 4, fp8"."""
    degrees = [
        f"{name} {getattr(replica, name)}" for name in ("tp", "pp", "dp", "ep") if getattr(replica, name) > 1
    ]
    return ", ".join((*degrees, precision)) if degrees else f"1 chip, {precision}"


def described(replica: Replica, precision: str) -> str:
    """A replica in a sentence."""
    return f"{replica.num_chips} × {replica.chip.title} ({layout_words(replica, precision)}, {replica.engine.name})"
