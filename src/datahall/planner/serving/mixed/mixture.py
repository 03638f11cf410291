"""Pools of several kinds of chip behind one router, each a share of the load in proportion to what it holds.

share of a pool  = what its replicas hold / what all hold
weight of a pool = requests that one of its replicas has in flight at what it holds, over those of the first pool

The router sends a request to the replica with the fewest in flight for its weight, so that slower and smaller replicas
get as much as they hold.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from datahall.inference.closed_form.conversations import stay_of
from datahall.inference.fleet.fleet import Fleet, Pool
from datahall.inference.simulation.run import ServingRun
from datahall.planner.serving.candidate import Candidate
from datahall.planner.serving.demand import Demand
from datahall.planner.serving.mixed.split import held_by, spare_of

WEIGHT_DECIMALS = 2  # as a router is told


class Mixture(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Pools of the best group of each kind, and the run that confirms them."""

    alone: tuple[Candidate, ...]  # of each pool, the best of its chip as it would serve alone
    counts: tuple[int, ...]  # replicas of each pool, spare ones with them
    num_spare: int  # of all of them, whichever are out
    run: ServingRun | None = None  # with the headroom used up, and the most capable spare ones out
    hurried: ServingRun | None = None  # and of users who ask again as soon as they are answered

    @property
    def demand(self) -> Demand:
        return self.alone[0].demand

    @property
    def headroom_fraction(self) -> float:
        return self.alone[0].headroom_fraction

    @property
    def rates_per_s(self) -> tuple[float, ...]:
        """What one replica of each pool holds."""
        return tuple(one.held_per_s for one in self.alone)

    @property
    def spare(self) -> tuple[int, ...]:
        """Of each pool the replicas that may be out: the most capable of all."""
        return spare_of(self.rates_per_s, self.counts, self.num_spare)

    @property
    def serving(self) -> tuple[int, ...]:
        """Of each pool the replicas that are left then."""
        return tuple(count - out for count, out in zip(self.counts, self.spare, strict=True))

    @property
    def held_per_s(self) -> float:
        """What all hold, those out."""
        return held_by(self.rates_per_s, self.counts, self.num_spare)

    @property
    def full_rate_per_s(self) -> float:
        """What comes when the headroom is used up."""
        return self.demand.rate_per_s / (1.0 - self.headroom_fraction)

    @property
    def full_load_ratio(self) -> float:
        """What that is of the demand."""
        return 1.0 / (1.0 - self.headroom_fraction)

    @property
    def more_load_fraction(self) -> float:
        """What that is more than the demand."""
        return self.full_load_ratio - 1.0

    @property
    def spare_fraction(self) -> float:
        """What could still come before the limits break, spare replicas out."""
        return self.held_per_s / self.demand.rate_per_s - 1.0

    @property
    def shares(self) -> tuple[float, ...]:
        """Of the load, that each pool gets."""
        held = [rate * count for rate, count in zip(self.rates_per_s, self.counts, strict=True)]
        return tuple(one / sum(held) for one in held)

    @property
    def num_chips(self) -> int:
        return sum(self.pool_chips)

    @property
    def pool_chips(self) -> tuple[int, ...]:
        """Chips of each pool."""
        return tuple(
            one.replica.num_chips * count for one, count in zip(self.alone, self.counts, strict=True)
        )

    @property
    def num_replicas(self) -> int:
        return sum(self.counts)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """Of each pool at the router, with the digits that it is told."""
        flying = [one.held_per_s * stay_of(one.held.load, one.held_state) for one in self.alone]
        return tuple(max(10**-WEIGHT_DECIMALS, round(one / flying[0], WEIGHT_DECIMALS)) for one in flying)

    @property
    def chip_output_tokens_per_s(self) -> float:
        """What one chip yields at the load asked, in the mean."""
        return self.demand.rate_per_s * self.demand.load.output / self.num_chips

    @property
    def keeps(self) -> bool:
        """Whether enough requests kept both limits when it was simulated."""
        first = self.alone[0]
        return first.kept_in(self.run) and (self.hurried is None or first.kept_in(self.hurried))

    def pool(self, place: int) -> Candidate:
        """One pool as a fleet of its own under its share of the load."""
        one, share = self.alone[place], self.shares[place]
        demand = msgspec.structs.replace(
            self.demand,
            rate_per_s=self.demand.rate_per_s * share,
            users=round(self.demand.users * share),
        )
        return msgspec.structs.replace(
            one,
            demand=demand,
            num_replicas=max(1, self.serving[place]),
            num_spare=self.counts[place] - max(1, self.serving[place]),
            num_fewer=0,
            run=self.run,
            hurried=self.hurried,
        )

    def fleet(self, counts: tuple[int, ...]) -> Fleet:
        """So many replicas of each pool behind the router."""
        return Fleet(
            pools=tuple(
                Pool(replica=one.replica, count=count, weight_ratio=weight, table=one.held.price.table)
                for one, count, weight in zip(self.alone, counts, self.weights, strict=True)
                if count
            )
        )
