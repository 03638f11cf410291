"""What the ledger takes a benchmark to have done though its source does not state it, each in one row of a table.

They are inferred from marked rows of the same source, not from a document alone, so a score rests on them: the ledger
says what it would be without (`as_stated_ratio` of a prediction), and docs/validation.md what it would be without each.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from datahall.catalog.entries.chip import Chip
from datahall.validation.inference.run import Traffic

PARTED = 0.7  # of the longest: the shortest length that parts users as they are seen to be
SGLANG_BLACKWELL_STEPS, SGLANG_HOPPER_STEPS = 24.0, 5.0


def shortest_fraction(engine: str, chip: Chip) -> float:
    """How far lengths of NVIDIA's own runs vary around the stated ones; SGLang's runs on H100 do keep step."""
    return 1.0 if engine.startswith("sglang") and chip.name == "h100-sxm" else PARTED


def longest_ratio(shortest: float) -> float:
    """The longest length over the mean of lengths that are uniform from this share of the longest."""
    return 2.0 / (1.0 + shortest)


def warm_rounds(engine: str, chip: Chip) -> int:
    """Rounds of each user that a run of NVIDIA's own leaves out."""
    return 1 if engine.startswith("vllm") and chip.name == "h200-sxm" else 0


def unseen_tokens(engine: str, chip: Chip) -> float:
    """Decode steps before a client of InferenceX's SGLang servers sees a first token."""
    if not engine.startswith("sglang"):
        return 0.0
    return SGLANG_BLACKWELL_STEPS if "fp4" in chip.peak_flop_per_s else SGLANG_HOPPER_STEPS


class Assumption(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that benchmarks are taken to have done, and the traffic of a run without it."""

    name: str
    did: str
    inferred_from: str
    applies_to: str
    without: Callable[[Traffic], Traffic]

    def touches(self, traffic: Traffic) -> bool:
        """Whether a run is replayed with it."""
        return self.without(traffic) != traffic


def _fixed(traffic: Traffic) -> Traffic:
    if traffic.shortest_fraction != PARTED:
        return traffic
    ratio = longest_ratio(PARTED)
    return msgspec.structs.replace(
        traffic, shortest_fraction=1.0, prompt_tokens=traffic.prompt_tokens / ratio,
        output_tokens=traffic.output_tokens / ratio,
    )  # fmt: skip


ASSUMPTIONS = (
    Assumption(
        name="users part",
        did=f"lengths that are stated as fixed vary from {PARTED} of the longest to the longest, or something else "
        "parts users who start together as well as that",
        inferred_from="marked rows of NVIDIA's own runs: first tokens come too soon for users in lockstep, but not "
        "under SGLang on H100",
        applies_to="NVIDIA's own runs in AIConfigurator's sample, without SGLang on H100; NVIDIA NIM",
        without=_fixed,
    ),
    Assumption(
        name="first round left out",
        did="the first request of every user is not counted",
        inferred_from="marked rows of vLLM on H200: first tokens come five times too soon for users who start "
        "together; for NIM, that its tool waits until figures are stable",
        applies_to="NVIDIA's own runs of vLLM on H200 in AIConfigurator's sample; NVIDIA NIM",
        without=lambda traffic: msgspec.structs.replace(traffic, warm_rounds=0),
    ),
    Assumption(
        name="first tokens seen late",
        did=f"a client sees its first token {SGLANG_BLACKWELL_STEPS:.0f} decode steps late on Blackwell and "
        f"{SGLANG_HOPPER_STEPS:.0f} on Hopper",
        inferred_from="InferenceX's scripts let SGLang look for requests every 10 or 30 steps on Blackwell "
        "(--scheduler-recv-interval) and stream every 10 or 30 tokens (--stream-interval); the mean of both, fitted on "
        "its marked rows",
        applies_to="InferenceX's runs of SGLang in AIConfigurator's sample",
        without=lambda traffic: msgspec.structs.replace(traffic, unseen_tokens=0.0),
    ),
)
