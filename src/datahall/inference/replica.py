"""One replica: an engine that serves a model on a group of chips."""

from __future__ import annotations

import msgspec

from datahall.catalog.chip import Chip
from datahall.catalog.model import Model
from datahall.inference.engine import Engine
from datahall.workload.precision import BF16, Precision


class Speculation(msgspec.Struct, frozen=True, kw_only=True):
    """Drafted tokens that the model verifies in one pass."""

    num_draft: int = 3  # tokens drafted for each step
    acceptance: float = 0.7  # chance that a drafted token is kept, given all before it were
    draft: str = "mtp"  # "mtp" (a layer of the model), "ngram" (free), or the name of a draft model


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
    max_context: int = 0  # tokens of the longest sequence it accepts; 0: the model's
    routing_skew: float = 0.0  # exponent of the power law of expert popularity; 0: balanced
    kv_blocks: int = 0  # blocks the engine reported; 0: from memory
    num_domain: int = 0  # chips of a scale-up domain; 0: the chip's usual server
    nic_bytes_per_s: float = 0.0  # 0: the chip's usual

    @property
    def num_chips(self) -> int:
        return self.tp * self.pp * self.dp
