"""What leaves a chip's memory for the host's or for NVMe: bytes moved, the bandwidth that takes, and what shows.

    optimizer    gradients go down, the host updates, weights as they are multiplied come back; once a step
    parameters   each micro-batch fetches its weights for forward and again for backward
    activations  what forward keeps goes down beside it and comes back beside backward

Traffic hides behind the kernels it runs beside: forward is a third of a micro-batch, backward two thirds.
References: Ren et al. (2021), ZeRO-Offload; Rajbhandari et al. (2021), ZeRO-Infinity; Isaev et al. (2023), Calculon.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from datahall.cluster.host import Host
from datahall.errors import ScenarioError, option
from datahall.scenario.sections.training import USUAL_SCHEDULE
from datahall.scenario.words import OFFLOADS, TIERS
from datahall.training.layout.columns import Column, Space
from datahall.training.memory.bookkeeping import Bookkeeping
from datahall.training.step.exchange import chip_share, gathered_bytes, trained_on_chip
from datahall.training.step.passes import STREAM_SHARE
from datahall.training.step.shard import shard_bytes
from datahall.training.step.stage import in_flight
from datahall.units import fmt
from datahall.workload.memory.recipe import StateRecipe

if TYPE_CHECKING:
    from datahall.training.step.framework import Framework
    from datahall.training.step.step import Job

FORWARD = 1.0 / 3.0  # share of a micro-batch
MEMORY_SHARE = STREAM_SHARE  # of the host's memory bandwidth that a streaming update reaches, as on the chip
UNKNOWN_MEMORY = "the catalogue knows no bandwidth of its memory"


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What each chip of a space has to move, as columns [B]: weights and activations of one micro-batch, own share."""

    owned_values: Column  # parameters whose state this chip keeps
    weight_bytes: Column  # of its weights as they lie outside
    kept_bytes: Column  # activations of one micro-batch
    num_in_flight: Column  # micro-batches whose activations lie outside at once
    value_bytes: float  # of a weight that comes back
    recipe: StateRecipe  # of what the host updates


def traffic_of(
    job: Job,
    space: Space,
    books: Bookkeeping,
    num_micro: Column,
    *,
    schedule: str = USUAL_SCHEDULE,
) -> Traffic:
    """The traffic of every layout from its share of the parameters; activations only where they move."""
    share, cut, (dense, expert) = chip_share(job, space), space.zero >= 3, gathered_bytes(job, books)
    weights = dense * share.dense / np.where(cut, space.sharers, 1.0)
    weights = weights + expert * share.expert / np.where(cut, space.expert_sharers, 1.0)
    kept = np.zeros(len(space))
    if bool((space.offloaded("activations") > 0).any()):
        by_kind = shard_bytes(job, space, books).kept
        kept = sum((count * by_kind[kind] for kind, count in job.model.layer_groups()), kept) / space.pp
    return Traffic(
        owned_values=trained_on_chip(job, space).owned(space),
        weight_bytes=weights,
        kept_bytes=kept,
        num_in_flight=in_flight(schedule, num_micro, space.pp, space.vpp, 0),
        value_bytes=job.value_bytes,
        recipe=books.recipe,
    )


class Exposed(msgspec.Struct, frozen=True, kw_only=True):
    """What offloading adds to a step [s], by part."""

    optimizer_s: Column
    parameters_s: Column
    activations_s: Column

    @property
    def total_s(self) -> Column:
        return self.optimizer_s + self.parameters_s + self.activations_s


def exposed_times(
    host: Host, framework: Framework, space: Space, traffic: Traffic, slot_s: Column, num_micro: Column
) -> Exposed:
    """What the kernels do not hide of the traffic of every layout [s]; nothing where nothing is offloaded."""
    if not space.offload.any():
        none = np.zeros(len(space))
        return Exposed(optimizer_s=none, parameters_s=none, activations_s=none)
    rates = {what: _rates(host, space, what) for what in OFFLOADS}
    forward_s, backward_s = FORWARD * slot_s, (1.0 - FORWARD) * slot_s
    weights_s = traffic.weight_bytes / rates["parameters"]
    kept_s = traffic.kept_bytes / rates["activations"]
    weights_only = np.maximum(0.0, weights_s - forward_s) + np.maximum(0.0, weights_s - backward_s)
    # weights come up beside forward while activations go down; in backward both come up
    both = np.maximum(0.0, np.maximum(weights_s, kept_s) - forward_s)
    both = both + np.maximum(0.0, weights_s + kept_s - backward_s)
    return Exposed(
        optimizer_s=_update(host, framework, space, traffic, rates["optimizer"], backward_s),
        parameters_s=num_micro * weights_only,
        activations_s=num_micro * (both - weights_only),
    )


def _rates(host: Host, space: Space, what: str) -> Column:
    """Rate to where a part lies; infinite where it stays on the chip."""
    place = space.offloaded(what)
    table = [inf, *(host.tier_bytes_per_s(tier) for tier in TIERS)]
    for at, tier in enumerate(TIERS, start=1):
        if not isfinite(table[at]) and bool((place == at).any()):
            raise ScenarioError(
                f"{what} cannot go to {tier}: the catalogue knows no bandwidth of it for this chip",
                field="offload",
                hint=option("offload", what) if tier == "nvme" else "a chip whose host link is known",
            )
    return np.array(table)[place]


def _update(
    host: Host, framework: Framework, space: Space, traffic: Traffic, rate: Column, backward_s: Column
) -> Column:
    """Gradients down beside the last backward, then the host's update; drives and the way back run beside that."""
    place = space.offloaded("optimizer")
    down_s = traffic.owned_values * framework.sent_bytes(traffic.value_bytes) / rate
    up_s = traffic.owned_values * traffic.value_bytes / rate
    update_s = _update_time(host, traffic)
    drives_s = np.where(place == 2, 2.0 * traffic.recipe.optimizer * traffic.owned_values / rate, 0.0)
    longest = np.maximum(np.maximum(up_s, update_s), drives_s)
    return np.where(place > 0, np.maximum(0.0, down_s - backward_s) + longest, 0.0)


def _update_time(host: Host, traffic: Traffic) -> Column:
    """Time in which the host reads and writes the state it updates [s]; 0, and said, where its rate is unknown."""
    if not isfinite(host.memory_bytes_per_s):
        return np.zeros(np.shape(traffic.owned_values))
    return traffic.owned_values * traffic.recipe.updated / (MEMORY_SHARE * host.memory_bytes_per_s)


def held_bytes(traffic: Traffic) -> dict[str, Column]:
    """What each part would take outside the chip [B]."""
    return {
        "optimizer": traffic.recipe.optimizer * traffic.owned_values,
        "parameters": traffic.weight_bytes,
        "activations": traffic.kept_bytes * traffic.num_in_flight,
    }


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One part that one layout moves out: what that saves, moves, needs and shows."""

    what: str
    tier: str
    held_bytes: float  # outside, per chip
    capacity_bytes: float  # there, per chip
    moved_bytes: float  # per step and chip, both ways
    needed_bytes_per_s: float  # to stay hidden
    there_bytes_per_s: float
    exposed_s: float
    counts_update: bool = True  # whether the host's own update is part of what shows

    @property
    def keeps_up(self) -> bool:
        return self.needed_bytes_per_s <= self.there_bytes_per_s

    @property
    def fits(self) -> bool:
        """Whether the tier holds it; what nobody published is not held against it."""
        return not self.held_bytes > self.capacity_bytes

    @property
    def sentence(self) -> str:
        """One line for a person."""
        needed, there = (
            fmt(one, "bytes_per_s", 3) for one in (self.needed_bytes_per_s, self.there_bytes_per_s)
        )
        rate = f"{needed} needed to hide, {there} there"
        shown = fmt(self.exposed_s, "s", 3)
        own = self.what == "optimizer" and self.keeps_up and self.counts_update
        shows = f"the host's own update shows: {shown}" if own else f"{shown} of the step shows"
        if not self.counts_update:
            shows = f"{shows} at least; the host's own update is not counted: {UNKNOWN_MEMORY}"
        verdict = "keeps up" if self.keeps_up else "does not keep up"
        room = (
            ""
            if self.fits
            else f"; {fmt(self.held_bytes - self.capacity_bytes, 'bytes', 3)} more than the {self.tier} has"
        )
        return f"{self.what} on {self.tier} {verdict}: {rate}, {shows}{room}"


def offload_lines(
    host: Host, framework: Framework, space: Space, traffic: Traffic, slot_s: Column, num_micro: Column
) -> tuple[Line, ...]:
    """Every part that the first layout of a space moves out."""
    exposed = exposed_times(host, framework, space, traffic, slot_s, num_micro)
    owned, weights, kept = (
        float(one[0]) for one in (traffic.owned_values, traffic.weight_bytes, traffic.kept_bytes)
    )
    slot, micro = float(slot_s[0]), float(num_micro[0])
    drives = 2.0 * traffic.recipe.optimizer * owned
    sent, back = framework.sent_bytes(traffic.value_bytes), traffic.value_bytes
    held = {what: float(column[0]) for what, column in held_bytes(traffic).items()}
    moved = {
        "optimizer": (sent + back) * owned,
        "parameters": 2.0 * micro * weights,
        "activations": 2.0 * micro * kept,
    }
    update_s = float(_update_time(host, traffic)[0])
    windows = {
        "optimizer": (1.0 - FORWARD) * slot,
        "parameters": FORWARD * slot,
        "activations": FORWARD * slot,
    }
    in_window = {"optimizer": sent * owned, "parameters": weights, "activations": kept}
    found = []
    for what in OFFLOADS:
        place = int(space.offloaded(what)[0])
        if place:
            tier = TIERS[place - 1]
            needed = in_window[what] / windows[what]
            if what == "optimizer" and update_s:
                needed = max(needed, (drives if tier == "nvme" else back * owned) / update_s)
            found.append(
                Line(
                    what=what,
                    tier=tier,
                    held_bytes=held[what],
                    capacity_bytes=host.tier_bytes(tier),
                    moved_bytes=moved[what] + (drives if what == "optimizer" and tier == "nvme" else 0.0),
                    needed_bytes_per_s=needed,
                    there_bytes_per_s=host.tier_bytes_per_s(tier),
                    exposed_s=float(getattr(exposed, f"{what}_s")[0]),
                    counts_update=what != "optimizer" or isfinite(host.memory_bytes_per_s),
                )
            )
    return tuple(found)
