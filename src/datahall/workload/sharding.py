"""How the operators of a model are divided among the chips of one group, seen from one chip."""

from __future__ import annotations

import msgspec
import numpy as np

from datahall.catalog.entries.model import Model
from datahall.workload.division import Split
from datahall.workload.operator import Number


class Sharding(msgspec.Struct, frozen=True, kw_only=True):
    """One chip's share of every operator.

    The batch of a pass is that of the `tp` chips that hold one copy of the dense weights.  Experts are
    spread over `ep` chips: inside the group when ep ≤ tp (tp/ep chips then split each expert), across
    ep/tp groups when ep > tp, each of which brings a batch of the same size.  `num_groups` gives their number
    where it is not ep/tp: engines whose attention ranks meet at the experts may also split each expert over
    tp·num_groups/ep of the chips.  `sequence_parallel` splits norms and residuals over the tp chips;
    `dp_attention` gives each of them whole attention layers and batch/tp of the sequences; `cp` splits the
    new tokens of each sequence.
    """

    tp: Number = 1.0
    ep: Number = 1.0
    cp: Number = 1.0
    num_groups: Number = 0.0  # 0: as many as ep and tp imply
    sequence_parallel: bool = False
    dp_attention: bool = False

    @property
    def attention_tp(self) -> Number:
        """Chips that share the heads of one sequence."""
        return 1.0 if self.dp_attention else self.tp

    @property
    def attention_dp(self) -> Number:
        """Chips of the group that each attend to their own sequences."""
        return self.tp if self.dp_attention else 1.0

    @property
    def stream_split(self) -> Number:
        """Chips over which norms and residual additions are split."""
        return self.tp if self.sequence_parallel or self.dp_attention else 1.0

    @property
    def expert_tp(self) -> Number:
        """Chips that share one expert."""
        return np.maximum(self.tp * self.expert_groups / self.ep, 1.0)

    @property
    def expert_groups(self) -> Number:
        """Batches that meet at one set of experts."""
        implied: Number = np.maximum(self.ep / self.tp, 1.0)
        return np.maximum(self.num_groups, implied)

    def local_kv_heads(self, model: Model) -> Number:
        """KV heads on one chip; fewer heads than chips are replicated."""
        return np.maximum(model.num_kv_heads / self.attention_tp, 1.0)

    def check(self, model: Model) -> None:
        """Raise ScenarioError at the first rule of `model` that this sharding breaks."""
        groups = float(np.max(self.num_groups))
        for tp, ep in zip(*_columns(self.tp, self.ep), strict=True):
            Split(tp=tp, ep=ep, num_groups=groups, dp_attention=self.dp_attention).check(model)


ONE_CHIP = Sharding()


def _columns(*numbers: Number) -> list[list[float]]:
    return [np.ravel(column).tolist() for column in np.broadcast_arrays(*numbers)]
