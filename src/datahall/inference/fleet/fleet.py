"""A fleet: pools of equal replicas, how requests are spread over them, and what happens to them meanwhile."""

from __future__ import annotations

from typing import cast

import msgspec

from datahall.cluster.joined import Joined
from datahall.errors import ScenarioError, UnknownNameError
from datahall.inference.engine.disaggregation import Handoff
from datahall.inference.engine.replica import Replica, joined
from datahall.inference.fleet.autoscale import USUAL, Autoscaling
from datahall.inference.step.table import StepTable
from datahall.scenario.words import ROUTINGS, Role, Routing


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """Equal replicas.  A table and a number of blocks replace those computed from the replica."""

    replica: Replica
    count: int = 1
    role: Role = "both"
    region: int = 0
    weight_ratio: float = 1.0  # routers that count requests divide those of a replica by it
    table: StepTable | None = None
    num_blocks: int = 0  # of the cache of one data-parallel rank
    handoff: Handoff | None = None  # of a prefill pool; none: from the replica's network

    def __post_init__(self) -> None:
        batching = self.replica.engine.batching
        if batching != "continuous" and self.role != "both":
            raise ScenarioError(
                f"{batching} batching cannot hand prompts over", field="engine", hint="continuous batching"
            )

    @property
    def joined(self) -> Joined:
        """What joins the chips of a replica, and whether a cache goes through their ports too."""
        return joined(self.replica, hands_over=self.role == "prefill" and self.handoff is None)


class ReplicaOutage(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that is gone for a while; its requests are sent elsewhere and computed again."""

    replica: int  # counted over all pools, from 0
    start_s: float
    duration_s: float
    drain: bool = False  # it finishes what it has and takes nothing new


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """Pools behind one router."""

    pools: tuple[Pool, ...]
    routing: Routing = cast(Routing, USUAL.routing)
    affinity_load_ratio: float = (
        USUAL.affinity_load_ratio  # prefix affinity: load over the mean at which the next replica is asked
    )
    distance_s: tuple[tuple[float, ...], ...] = ((0.0,),)  # one way, from a request's region to a replica's
    num_spill: int = USUAL.spill  # requests per replica at which a region sends further ones elsewhere
    outages: tuple[ReplicaOutage, ...] = ()
    autoscaling: Autoscaling | None = None

    def __post_init__(self) -> None:
        if self.routing not in ROUTINGS:
            raise UnknownNameError("routing", self.routing, ROUTINGS, hint=f"routings: {', '.join(ROUTINGS)}")
        if not self.pools or any(pool.count < 1 for pool in self.pools):
            raise ScenarioError(
                "a fleet without replicas serves nobody", hint="one pool with a count of 1 or more"
            )
        roles = {pool.role for pool in self.pools}
        if roles == {"prefill"} or ("prefill" in roles) != ("decode" in roles):
            raise ScenarioError(
                f"pools with {'the role' if len(roles) == 1 else 'the roles'} {', '.join(sorted(roles))} do not make "
                "a whole",
                hint="prefill and decode pools come together; a pool with the role both does all",
            )
        num_regions = len(self.distance_s)
        if any(len(row) != num_regions for row in self.distance_s):
            raise ScenarioError(
                "distances between regions are not a square table", hint="one row and one column a region"
            )
        beyond = [pool.region for pool in self.pools if not 0 <= pool.region < num_regions]
        if beyond:
            raise ScenarioError(
                f"a pool stands in region {beyond[0]}, but distances are given for {num_regions}",
                hint=f"regions 0 … {num_regions - 1}, or a row of distance_s for each",
            )
        lost = [one.replica for one in self.outages if not 0 <= one.replica < self.num_replicas]
        if lost:
            raise ScenarioError(
                f"an outage of replica {lost[0]}, but the fleet has {self.num_replicas}",
                hint=f"replicas 0 … {self.num_replicas - 1}",
            )

    @classmethod
    def of(cls, replica: Replica, count: int = 1, **options: object) -> Fleet:
        """Equal replicas behind one router."""
        return cls(pools=(Pool(replica=replica, count=count),), **options)  # type: ignore[arg-type]

    @property
    def num_replicas(self) -> int:
        """Replicas of all pools at the start."""
        return sum(pool.count for pool in self.pools)

    @property
    def routes(self) -> bool:
        """Whether a request may go to one replica or to another: before its prompt, or with it computed."""
        scaled = self.autoscaling is not None and self.autoscaling.most > 1
        decode = sum(pool.count for pool in self.pools if pool.role == "decode")
        return scaled or decode > 1 or self.num_replicas - decode > 1

    @property
    def num_ranks(self) -> int:
        """Ranks of all pools that attend to sequences of their own, at the start."""
        return sum(pool.count * pool.replica.dp for pool in self.pools)

    @property
    def num_chips(self) -> int:
        """Chips of all pools at the start."""
        return sum(pool.count * pool.replica.num_chips for pool in self.pools)
