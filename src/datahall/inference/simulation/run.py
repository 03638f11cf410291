"""What a simulated fleet did: latencies as histograms, counts, and one row per request where they were asked for."""

from __future__ import annotations

from math import nan

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.events.trace import Trace
from datahall.inference.simulation import histogram
from datahall.inference.simulation.histogram import E2E, ITL, QUEUE, TPOT, TTFT

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PERCENTILES = tuple(place / 100 for place in range(1, 100))  # at which a whole distribution is read
STATUS_NAMES = ("finished", "longer than the context", "larger than the cache", "answered from a cache")


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """One row per request that ended, in the order of their rows; times are absolute."""

    row: Ints
    status: Ints  # index into STATUS_NAMES
    replica: Ints
    prompt: Ints
    output: Ints
    hit: Ints  # prompt tokens found in the prefix cache
    preempted: Ints
    arrival_s: Floats
    scheduled_s: Floats  # −1: never
    first_s: Floats
    end_s: Floats

    @property
    def ttft_s(self) -> Floats:
        return self.first_s - self.arrival_s

    @property
    def tpot_s(self) -> Floats:
        """After the first token; NaN where there is only one."""
        several = self.output > 1
        return np.where(several, (self.end_s - self.first_s) / np.maximum(1, self.output - 1), nan)

    @property
    def e2e_s(self) -> Floats:
        return self.end_s - self.arrival_s


class ReplicaUse(msgspec.Struct, frozen=True, kw_only=True):
    """Columns over replicas."""

    pool: Ints
    busy_fraction: Floats
    active_s: Floats
    num_steps: Ints
    num_preempted: Ints
    cache_mean_fraction: Floats
    cache_peak_fraction: Floats
    queue_mean: Floats
    queue_peak: Ints
    prompt_tokens: Ints  # computed
    output_tokens: Ints
    free_blocks: Ints  # at the end
    blocks: Ints
    host_blocks: Ints  # known in the host's memory at the end
    drive_blocks: Ints  # and on drives


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    """Columns over the moments at which the autoscaler looked, before it acted."""

    time_s: Floats
    num_active: Ints  # replicas of the first pool that take requests
    num_starting: Ints
    num_requests: Ints  # in the system


class Watched(msgspec.Struct, frozen=True, kw_only=True):
    """Columns over moments of a run, equally far from each other."""

    time_s: Floats
    num_waiting: Floats  # requests in front of replicas, in the mean since the moment before
    num_running: Ints
    cache_fraction: Floats  # of the blocks of all replicas that are used


class ServingRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run as a whole.  Percentiles and goodput are of requests that arrived in the part that is measured."""

    duration_s: float  # from the start to the last event, or to the last end where only repairs follow
    num_arrived: int
    num_finished: int
    num_unfinished: int
    num_too_long: int  # rejected: prompt and answer pass the context
    num_too_large: int  # rejected: no cache holds them
    num_answered: int  # by a cache in front
    num_measured: int
    num_good: int  # of these, within the limits on TTFT and TPOT
    num_preempted: int
    num_rerouted: int
    prompt_tokens: int
    output_tokens: int
    hit_tokens: int  # found in a cache of prefixes, wherever
    measured_s: float  # over which rates are taken
    num_passed: int  # requests that went through in that time, and their tokens
    passed_prompt_tokens: int
    passed_output_tokens: int
    drain_apart: bool  # rates leave out the drain too; otherwise the run was too short, or was to count whole
    queue_mean: float
    queue_peak: int
    stable: bool
    sustained_per_s: float  # requests per second that the fleet would hold, where it was overloaded
    replicas: ReplicaUse
    histograms: Floats
    records: Records | None = None
    trace: Trace | None = None
    num_events: int
    scaling: Scaling | None = None  # where replicas are scaled
    watched: Watched | None = None  # where it was read over time
    host_hit_tokens: int  # of hit_tokens, lifted from the host's memory; counted when a prompt begins
    drive_hit_tokens: int  # and from drives
    num_over_budget: int  # times that a prompt was longer than what was left of a step
    num_over_blocks: (
        int  # times that free blocks were enough for the first piece of a prompt and not for all of it
    )
    num_short: int  # times that a prompt waited for free blocks

    @property
    def num_rejected(self) -> int:
        return self.num_too_long + self.num_too_large

    def ttft_s(self, share: float = 0.5) -> float:
        """Percentile of the time to the first token [s]."""
        return histogram.percentile(self.histograms[TTFT], share)

    def tpot_s(self, share: float = 0.5) -> float:
        """Percentile over requests of the time per output token after the first [s]."""
        return histogram.percentile(self.histograms[TPOT], share)

    def itl_s(self, share: float = 0.5) -> float:
        """Percentile over tokens of the time since the one before [s]."""
        return histogram.percentile(self.histograms[ITL], share)

    def e2e_s(self, share: float = 0.5) -> float:
        """Percentile of the time from arrival to the last token [s]."""
        return histogram.percentile(self.histograms[E2E], share)

    def queue_s(self, share: float = 0.5) -> float:
        """Percentile of the time from arrival to the first step [s]."""
        return histogram.percentile(self.histograms[QUEUE], share)

    def mean_s(self, measure: int) -> float:
        """Mean of a measure (TTFT, TPOT, ITL, E2E, QUEUE of `lifecycle`) [s]."""
        return histogram.mean(self.histograms[measure])

    @property
    def requests_per_s(self) -> float:
        return self.num_passed / self.measured_s if self.measured_s > 0 else nan

    @property
    def output_tokens_per_s(self) -> float:
        return self.passed_output_tokens / self.measured_s if self.measured_s > 0 else nan

    @property
    def prompt_tokens_per_s(self) -> float:
        return self.passed_prompt_tokens / self.measured_s if self.measured_s > 0 else nan

    @property
    def goodput_per_s(self) -> float:
        """Requests per second that kept both limits."""
        return self.good_fraction * self.requests_per_s

    @property
    def good_fraction(self) -> float:
        return self.num_good / self.num_measured if self.num_measured else nan

    @property
    def answered_fraction(self) -> float:
        """Share of requests that a cache in front answered."""
        return self.num_answered / self.num_arrived if self.num_arrived else nan

    @property
    def mean_prompt(self) -> int:
        """Prompt tokens of a measured request on average, whole ones."""
        return max(1, round(self.prompt_tokens / max(1, self.num_measured)))

    @property
    def mean_output(self) -> int:
        """Output tokens of a measured request on average, whole ones."""
        return max(1, round(self.output_tokens / max(1, self.num_measured)))

    @property
    def hit_fraction(self) -> float:
        """Share of prompt tokens that some cache of prefixes held."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    @property
    def hit_fractions(self) -> dict[str, float]:
        """The same by where they were found: on the chip, on the host, on drives; nothing where none was."""
        on_chip = self.hit_tokens - self.host_hit_tokens - self.drive_hit_tokens
        tiers = {
            "on the chip": on_chip,
            "on the host": self.host_hit_tokens,
            "on drives": self.drive_hit_tokens,
        }
        return {where: tokens / self.prompt_tokens for where, tokens in tiers.items() if tokens}
