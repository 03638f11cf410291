"""One way to serve a demand: a replica many times over, in closed form and as simulated."""

from __future__ import annotations

from math import ceil

import msgspec

from datahall.breakdown import Breakdown
from datahall.inference.closed_form.capacity import Held
from datahall.inference.closed_form.steady_state import State
from datahall.inference.engine.replica import Replica
from datahall.inference.simulation.run import ServingRun
from datahall.planner.serving.demand import Demand


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One way to serve the demand."""

    held: Held
    precision: str
    num_replicas: int  # that are needed
    demand: Demand
    headroom_fraction: float
    num_spare: int = 0  # replicas beside these, with which the limits are kept while so many are out
    num_added: int = 0  # of the replicas, more than the closed form asked for; below 0: it asked for too many
    num_fewer: int = 0  # replicas, without which the limits were not kept when simulated; 0: nobody tried
    run: ServingRun | None = None  # some of its replicas under their share of the load and of the headroom
    hurried: ServingRun | None = None  # and of its users, who ask again as soon as they are answered

    @property
    def replica(self) -> Replica:
        return self.held.replica

    @property
    def key(self) -> tuple[str, str, int, int, int, int]:
        """What tells it from others: chip, format and degrees."""
        replica = self.replica
        return replica.chip.name, self.precision, replica.tp, replica.pp, replica.dp, replica.ep

    @property
    def num_deployed(self) -> int:
        """All replicas: those that are needed and the spare ones."""
        return self.num_replicas + self.num_spare

    @property
    def num_chips(self) -> int:
        return self.num_deployed * self.replica.num_chips

    @property
    def num_joined(self) -> int:
        """Replicas that its machine was made for: those of the closed form, and the spare ones."""
        return self.num_deployed - self.num_added

    @property
    def repeats(self) -> bool:
        """Whether the stretch of a trace was played over and over."""
        recorded = self.demand.stretch
        return (
            recorded is not None
            and self.run is not None
            and self.run.num_arrived >= 2 * len(recorded.requests)
        )

    @property
    def asks_again(self) -> bool:
        """Whether users were simulated who ask again as soon as they have read and thought."""
        return self.run is not None and self.demand.reuse is not None and self.demand.users > 0

    @property
    def offered_per_s(self) -> float:
        """What comes: as demanded, or as users made it when simulated."""
        if self.run is None or not self.asks_again:
            return self.demand.rate_per_s
        each = self.run.requests_per_s / self.run.replicas.pool.size
        return each * self.num_replicas * (1.0 - self.headroom_fraction)

    @property
    def replica_rate_per_s(self) -> float:
        """Requests per second that one replica gets."""
        return self.offered_per_s / self.num_replicas

    @property
    def full_rate_per_s(self) -> float:
        """What all get when the headroom is used up."""
        return self.offered_per_s / (1.0 - self.headroom_fraction)

    @property
    def full_load_ratio(self) -> float:
        """What that is of the demand."""
        return 1.0 / (1.0 - self.headroom_fraction)

    @property
    def more_load_fraction(self) -> float:
        """What that is more than the demand."""
        return self.full_load_ratio - 1.0

    @property
    def state(self) -> State:
        """Of one rank when the demand is spread evenly."""
        return self.held.at(self.replica_rate_per_s)

    @property
    def full_state(self) -> State:
        """Of one rank when the headroom is used up."""
        return self.held.at(self.full_rate_per_s / self.num_replicas)

    @property
    def held_per_s(self) -> float:
        """What one replica holds [1/s]: in closed form, or where simulation asked for others what it then kept."""
        share = self.full_rate_per_s / self.num_replicas
        if self.num_added < 0:
            return share
        if self.asks_again:
            return share if self.num_added else max(share, self.held.rate_per_s)
        return min(self.held.rate_per_s, share) if self.num_added else self.held.rate_per_s

    @property
    def held_state(self) -> State:
        """Of one rank at that rate."""
        return self.held.at(self.held_per_s) if self.num_added else self.held.state

    @property
    def num_decoding(self) -> float:
        """Sequences of all ranks of a replica that decode at once there."""
        return self.held_state.decoding * self.replica.dp

    @property
    def held_tokens_per_s(self) -> float:
        """Tokens of answers that one replica yields there."""
        return self.held_per_s * self.demand.load.output

    @property
    def held_chip_per_s(self) -> float:
        """What one chip holds."""
        return self.held_per_s / self.replica.num_chips

    @property
    def knee_chip_per_s(self) -> float:
        """What one chip holds in closed form."""
        return self.held.rate_per_s / self.replica.num_chips

    @property
    def binds(self) -> str:
        """What ends the load of a replica: in closed form, or the latency that was nearer its limit when simulated."""
        if not self.num_added or self.run is None:
            return self.held.ends
        reached = self.limit_shares
        return "TTFT" if not reached["TPOT"] > reached["TTFT"] else "TPOT"

    @property
    def limit_shares(self) -> dict[str, float]:
        """What each latency at the percentile is of its limit when simulated with the headroom used up."""
        assert self.run is not None
        promise = self.demand.promise
        return {
            "TTFT": self.run.ttft_s(promise.percentile) / promise.ttft_s,
            "TPOT": self.run.tpot_s(promise.percentile) / promise.tpot_s,
        }

    @property
    def num_least(self) -> int:
        """Replicas without which the load would not be served at all, however long it waits."""
        return max(1, ceil(self.full_rate_per_s / self.held.most_per_s))

    @property
    def num_bound(self) -> int:
        """The fewest that are tried: those, but where caches may find more of prompts than the closed form counts."""
        return 1 if self.demand.finds_cached else self.num_least

    @property
    def spare_fraction(self) -> float:
        """What could still come, spare replicas out, before the limits break; nothing where they did when simulated."""
        if self.run is not None and not self.keeps:
            return 0.0
        return self.num_replicas * self.held_per_s / self.offered_per_s - 1.0

    @property
    def chip_output_tokens_per_s(self) -> float:
        """What one chip yields at the load asked."""
        return self.offered_per_s * self.demand.load.output / self.num_chips

    def load_of(self, num_replicas: int) -> tuple[int, float]:
        """Whole users, and requests per second, that come to so many of the replicas."""
        share = num_replicas / self.num_deployed
        return int(self.demand.users * share), self.demand.rate_per_s * share

    @property
    def is_routed(self) -> bool:
        """Whether it matters which replica gets the next turn of a conversation."""
        return self.demand.reuse is not None and self.num_replicas > 1

    @property
    def cached_fraction(self) -> float:
        """Share of prompt tokens that caches have in closed form, at what a replica holds."""
        return self.held.load.cached / self.held.load.prompt

    @property
    def never_short(self) -> bool:
        """Whether the cache has room for whatever comes, in closed form and as simulated."""
        return (
            self.held.ends != "cache"
            and self.run is not None
            and not (self.run.num_short + self.run.num_preempted)
        )

    @property
    def keeps(self) -> bool:
        """Whether enough requests kept both limits when it was simulated."""
        return self.kept_in(self.run) and (self.hurried is None or self.kept_in(self.hurried))

    def kept_in(self, run: ServingRun | None) -> bool:
        """Whether enough requests of a run kept both limits."""
        return run is not None and run.stable and run.good_fraction >= self.demand.promise.percentile


class Proposal(Candidate, frozen=True, kw_only=True):
    """The best candidate of one chip: simulated, and opened as far as an answer shows it."""

    run: ServingRun
    step: Breakdown  # of a rank at the most that a replica holds in closed form
    resource_shares: dict[str, float]  # of a step at what it holds, by what bounds each part, greatest first
    load_curve: tuple[
        tuple[float, float], ...
    ]  # requests/s of a chip and the TPOT at the percentile there [s]
    latencies: dict[str, Breakdown]  # TTFT and TPOT at the percentile, with the headroom used up
