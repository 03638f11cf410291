"""Replicas and loads in words."""

from __future__ import annotations

import numpy as np

from datahall.answers.bounds import whole
from datahall.errors import ScenarioError
from datahall.inference.closed_form.steady_state import Load
from datahall.inference.engine.engine import engine
from datahall.inference.engine.replica import Adapters, Replica
from datahall.workload.traffic.lengths import Lengths, quantile_tokens
from datahall.workload.traffic.traffic import Traffic, expected_tokens

MOST_ADAPTERS, MOST_RANK = 1_000_000, 4096
MOST_DRAFTED = 64  # tokens a step: beyond it hardly one is ever kept

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


def continuous(name: str) -> None:
    """Refuse an engine of which there is no closed form."""
    if engine(name).batching != "continuous":
        raise ScenarioError(
            f"{name} batching has no closed form to plan with",
            where="--engine",
            hint=f"datahall simulate serve … --engine {name} plays it; plans are for vllm, sglang, trtllm",
        )


def layout_words(replica: Replica, precision: str) -> str:
    """How a replica is cut, e.g. "tp 4, fp8"."""
    degrees = [
        f"{name} {getattr(replica, name)}" for name in ("tp", "pp", "dp", "ep") if getattr(replica, name) > 1
    ]
    return ", ".join((*degrees, precision)) if degrees else f"1 chip, {precision}"


def described(replica: Replica, precision: str) -> str:
    """A replica in a sentence."""
    return f"{replica.num_chips} × {replica.chip.title} ({layout_words(replica, precision)}, {replica.engine.name})"


def adapters_from(
    num: str | int | None, rank: str | int = 16, num_resident: str | int | None = None
) -> Adapters | None:
    """Adapters as flags say them; none where there is no number."""
    if num is None:
        return None
    return Adapters(
        num=whole("adapters", num, at_most=MOST_ADAPTERS),
        rank=whole("adapter-rank", rank, at_most=MOST_RANK),
        num_resident=whole("resident-adapters", num_resident) if num_resident is not None else 0,
    )


def load_of(traffic: Traffic) -> Load:
    """The mean request of some traffic; what a cache may hold of it is not counted."""
    prompt, output = expected_tokens(traffic)
    return Load(
        prompt=prompt,
        output=output,
        spread=variation(traffic.prompt),
        output_spread=variation(traffic.output),
    )


def variation(lengths: Lengths) -> float:
    """Standard deviation of lengths over their mean, from their percentiles."""
    drawn = np.array([quantile_tokens(lengths, (place + 0.5) / 200) for place in range(200)])
    return float(drawn.std() / drawn.mean())
