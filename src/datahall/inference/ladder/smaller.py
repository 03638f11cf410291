"""A smaller model in place of the large one, for all requests or for the easy ones of them.

    chip time of a request = e / held by a chip of the small + (1 − e) / held by a chip of the large     e: easy ones

Each model stands on chips of its own, as many as its requests need; who tells easy from hard costs nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite, nan

import msgspec

from datahall.catalog.entries.model import Model
from datahall.inference.ladder.techniques import GROUPS, Effect, Setting, effect, with_replica
from datahall.scenario.sections.wanted.promise import Promise
from datahall.workload.parameters import count_parameters
from datahall.workload.precision import block_scaled

MOST_SHARE = 0.25  # of the parameters of the large one, that makes another a small one
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)  # of requests that are easy, beside the one that is asked for


class Routed(msgspec.Struct, frozen=True, kw_only=True):
    """So large a share of the requests answered by the smaller model."""

    easy_fraction: float
    held_per_s: float  # by a chip of all
    ttft_s: float  # means over all requests, at the rate asked of the large one's chips
    tpot_s: float
    e2e_s: float


def smaller_of(model: Model, models: Iterable[Model]) -> Model | None:
    """The largest that reads the same tokens and has a quarter of the parameters or less, the newest of equals."""
    most = MOST_SHARE * _size(model)
    alike = [
        one for one in models if (one.family, one.vocab) == (model.family, model.vocab) and _size(one) <= most
    ]
    return max(alike, key=lambda one: (_size(one), one.year, one.name), default=None)


def _size(model: Model) -> float:
    return float(count_parameters(model).total)


def instead(setting: Setting, model: Model, slo: Promise, rate_per_s: float) -> tuple[Setting, Effect]:
    """The smaller model on the group that holds the most for a chip, and what it does there with all requests."""
    large = setting.replica
    found = []
    for tp in (one for one in GROUPS if one <= max(GROUPS[0], large.num_chips)):
        scaled = block_scaled(model, large.precision)
        tried = with_replica(
            setting, model=model, block_scaled=scaled, tp=tp, pp=1, dp=1, ep=1, speculation=None, kv_blocks=0
        )
        share = tp / large.num_chips  # of the requests, on chips as many as the large one has
        found.append((tried, effect("", tried, slo, rate_per_s * share)))
    return max(found, key=lambda pair: pair[1].held_per_s)


def routed(
    setting: Setting,
    large: Effect,
    small: tuple[Setting, Effect],
    slo: Promise,
    rate_per_s: float,
    easy: float,
) -> Routed:
    """The two models on as many chips as the large one alone had, divided as their shares of the requests need them."""
    placed, alone = small
    parts = ((setting, large, 1.0 - easy), (placed, alone, easy))
    if not all(one.held_per_s > 0 or share == 0 for _, one, share in parts):
        return Routed(easy_fraction=easy, held_per_s=0.0, ttft_s=nan, tpot_s=nan, e2e_s=nan)
    chip_s = sum(share / one.held_per_s for _, one, share in parts if share)
    chip_rate = rate_per_s / setting.replica.num_chips
    ttft_s, tpot_s = 0.0, 0.0
    for one, alike, share in parts:
        if not share:
            continue
        # what comes to a chip of this model: of its share, over its part of the chips
        each = chip_rate * alike.held_per_s * chip_s * one.replica.num_chips
        there = effect("", one, slo, each)
        ttft_s += share * there.ttft_s
        tpot_s += share * there.tpot_s
    e2e_s = ttft_s + tpot_s * (setting.load.output - 1.0)
    return Routed(
        easy_fraction=easy,
        held_per_s=1.0 / chip_s,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        e2e_s=e2e_s if isfinite(e2e_s) else nan,
    )


def as_effect(found: Routed, name: str, detail: str) -> Effect:
    """The same as a line among the others."""
    note = "" if isfinite(found.ttft_s) else "one of the two models breaks the limits, or is overloaded"
    return Effect(
        name=name,
        detail=detail,
        held_per_s=found.held_per_s,
        ttft_s=found.ttft_s,
        tpot_s=found.tpot_s,
        note=note,
    )
