"""What is trained in place of the weights, and what the frozen weights take.

    NF4, doubly quantised:  4 bits a value, 8 more for the scale of 64 values, 32 more for the scale of 256 scales

References: Hu et al. (2021), LoRA; Dettmers et al. (2023), QLoRA, § 3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from datahall.breakdown import Source
from datahall.catalog.entries.model import Layer, Model
from datahall.workload.adapters.count import adapter_parameters
from datahall.workload.adapters.targets import Targets
from datahall.workload.parameters import LATENT, count_parameters, layer_parameters

if TYPE_CHECKING:
    from datahall.training.memory.bookkeeping import Bookkeeping
    from datahall.training.step.step import Job

NF4_BYTES = (4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0)) / 8.0
ONCE_QUANTISED_BYTES = (4.0 + 32.0 / 64.0) / 8.0  # scales as they are: 32 bits for 64 values
NF4 = Source("Dettmers et al. (2023), QLoRA, § 3: NF4 with double quantisation", "2023-05", "derived")


class Adapters(msgspec.Struct, frozen=True, kw_only=True):
    """Low-rank adapters, which alone are trained."""

    rank: int
    targets: Targets = "all"
    quantised: bool = False  # frozen linear layers lie in NF4, and are multiplied in 16 bits
    doubly: bool = True  # their scales are quantised too

    @property
    def frozen_bytes(self) -> float:
        """Bytes of a quantised weight."""
        return NF4_BYTES if self.doubly else ONCE_QUANTISED_BYTES

    @property
    def words(self) -> str:
        """As a person says it."""
        kind = "QLoRA" if self.quantised else "LoRA"
        beside = "" if self.targets == "all" else f" beside {self.targets.replace('-', ' and ')}"
        return f"{kind} of rank {self.rank}{beside}"

    def parameters(self, model: Model) -> float:
        """Those of a whole model that are trained."""
        return adapter_parameters(model, self.targets, self.rank)


def trained_share(job: Job) -> float:
    """Trained parameters over all besides routed experts: these have no adapters."""
    if job.adapters is None:
        return 1.0
    counts = count_parameters(job.model)
    return job.adapters.parameters(job.model) / (counts.total - counts.expert)


def trained_parameters(job: Job) -> float:
    """Parameters that have gradients and states."""
    if job.adapters is None:
        return float(count_parameters(job.model).total)
    return job.adapters.parameters(job.model)


class FrozenBytes(msgspec.Struct, frozen=True):
    """Bytes of one frozen weight: of a linear layer, and of what is never quantised (tables, norms, routers)."""

    linear_bytes: float
    wide_bytes: float


def frozen_bytes(job: Job, books: Bookkeeping) -> FrozenBytes:
    """As they are multiplied, for nothing updates them; narrower where the recipe of the state keeps them so."""
    wide = min(books.recipe.weight, job.value_bytes)
    if job.adapters is None or not job.adapters.quantised:
        return FrozenBytes(wide, wide)
    return FrozenBytes(job.adapters.frozen_bytes, wide)


def mean_frozen_bytes(job: Job, books: Bookkeeping) -> tuple[float, float]:
    """Bytes of a frozen weight in the mean: of all besides routed experts, and of these."""
    each, counts = frozen_bytes(job, books), count_parameters(job.model)
    dense = counts.total - counts.expert
    linear = counts.sharded + sum(part.count for part in counts.parts if part.name == LATENT)
    return (linear * each.linear_bytes + (dense - linear) * each.wide_bytes) / dense, each.linear_bytes


class Frozen(msgspec.Struct, frozen=True):
    """Weights of one layer by format and by the way they are divided."""

    num_sharded: float  # linear layers, cut over tp
    num_latent: float  # linear layers, whole on every chip
    num_whole: float  # norms, routers: whole, and never quantised
    num_expert: float


def frozen_layer(model: Model, kind: Layer) -> Frozen:
    """What a layer is made of while it is frozen."""
    counts = layer_parameters(model, kind)
    latent = float(sum(part.count for part in counts.parts if part.name == LATENT))
    return Frozen(float(counts.sharded), latent, counts.replicated - latent, float(counts.expert))
