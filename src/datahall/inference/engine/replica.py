"""One replica: an engine that serves a model on a group of chips."""

from __future__ import annotations

from math import inf

import msgspec

from datahall.breakdown import Breakdown
from datahall.catalog.entries.chip import Chip
from datahall.catalog.entries.model import Model
from datahall.cluster.cluster import cluster_of
from datahall.cluster.joined import Joined
from datahall.errors import ScenarioError
from datahall.fabric.collectives.system import System
from datahall.inference.engine.engine import Engine
from datahall.scenario.sections.deployment import Deployment
from datahall.workload.precision import BF16, Precision

USUAL = Deployment()  # what is so where nobody says otherwise


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """Drafted tokens that the model verifies in one pass."""

    num_draft: int = USUAL.num_draft  # tokens drafted for each step
    acceptance: float = (
        USUAL.acceptance_fraction
    )  # chance that a drafted token is kept, given all before it were
    draft: str = "mtp"  # "mtp" (a layer of the model), "ngram" (free), or the name of `model`
    model: Model | None = None  # that drafts, of the catalogue that was asked


class Adapters(msgspec.Struct, frozen=True, kw_only=True):
    """Fine-tuned variants that share the model, each by thin matrices beside its projections (LoRA)."""

    num: int  # that requests ask for
    rank: int = USUAL.adapter_rank
    num_resident: int = 0  # on the chips at once; 0: all
    zipf_factor: float = USUAL.adapter_zipf  # of their popularity; 0: all alike
    mlp: bool = True  # beside the dense MLPs too; otherwise beside attention alone

    def __post_init__(self) -> None:
        if self.num < 1 or self.rank < 1 or self.num_resident < 0 or not 0 <= self.zipf_factor < inf:
            raise ScenarioError(
                f"{self.num} adapters of rank {self.rank}, {self.num_resident} resident, "
                f"popularity by Zipf {self.zipf_factor:g}",
                hint="one adapter or more, of rank 1 or more; 0 resident: all",
            )

    @property
    def resident(self) -> int:
        """Adapters on the chips."""
        return min(self.num, self.num_resident or self.num)


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """An engine on tp · pp · dp chips.

    `dp` ranks attend to sequences of their own (attention data parallelism) and meet at the experts, which are spread
    over `ep` of the tp · dp chips of a stage; the other tp·dp/ep split each expert.
    """

    model: Model
    chip: Chip
    engine: Engine
    precision: Precision = BF16
    block_scaled: bool = False  # FP8 weights have a scale per 128 × 128 block, as DeepSeek's and Qwen's do
    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    speculation: Speculation | None = None
    adapters: Adapters | None = None
    max_context: int = 0  # tokens of the longest sequence it accepts; 0: the model's
    routing_skew: float = 0.0  # exponent of the power law of expert popularity; 0: balanced
    kv_blocks: int = 0  # blocks the engine reported; 0: from memory
    system: System | None = (
        None  # of the cluster that its chips are of; None: as sold, as far as that is published
    )
    network: Breakdown | None = (
        None  # what a chip of that cluster sends into the network, and where it is from
    )
    host_cache_bytes: float = 0.0  # for blocks pushed out of the chips' caches, all chips together; 0: none
    host_bytes_per_s: float = 0.0  # between a chip and its host, one way; 0: the chip's link
    drive_cache_bytes: float = 0.0  # for blocks pushed out of the host's memory
    drive_bytes_per_s: float = 0.0  # of a chip's share of the drives
    peer_to_peer: bool = (
        True  # whether cards reach each other's memory; without it they send through their host
    )

    @property
    def num_chips(self) -> int:
        return self.tp * self.pp * self.dp

    @property
    def num_domain(self) -> int:
        """Chips that reach each other without the network."""
        return self.system.num_domain if self.system is not None else max(1, self.chip.num_scale_up_domain)

    @property
    def port_bytes_per_s(self) -> float:
        """What one chip sends into the network, one way; not finite or 0 where nobody published it."""
        return self.system.nic_bytes_per_s if self.system is not None else self.chip.nic_bytes_per_s


def replica_system(replica: Replica) -> System:
    """The machine that a replica's collectives run on; an error where nobody published how its chips are joined."""
    return replica.system or cluster_of(replica.chip, replica.num_chips).system


def exchanging_chips(replica: Replica) -> int:
    """Chips over which the widest of a replica's groups that exchange anything stretches; 1: none do."""
    if replica.pp > 1:
        return replica.num_chips
    return replica.tp * (replica.dp if replica.model.moe is not None else 1)


def joined(replica: Replica, *, hands_over: bool = False) -> Joined:
    """What joins a replica's chips, and how far their exchange reaches."""
    return Joined(replica.chip, replica.system, exchanging_chips(replica), hands_over, switched=True)
