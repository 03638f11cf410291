"""How a model is spread over chips for training: one layout."""

from __future__ import annotations

import msgspec

from datahall.catalog.entries.model import Model
from datahall.scenario.sections.training import USUAL_MICRO_BATCH, USUAL_ZERO
from datahall.scenario.words import ContextExchange
from datahall.training.layout.codes import offload_parts
from datahall.training.layout.legality import broken_rules, check_layout
from datahall.workload.memory.recompute import Recompute


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """Degrees of parallelism, micro-batch and what is recomputed; data parallelism takes the chips left over."""

    tp: int = 1
    pp: int = 1
    vpp: int = 1  # virtual stages on each chip
    cp: int = 1
    ep: int = 1
    dp: int = 1
    zero: int = USUAL_ZERO  # 0 none, 1 optimizer, 2 and gradients, 3 and parameters (FSDP)
    micro_batch: int = USUAL_MICRO_BATCH
    recompute: Recompute = "none"
    sequence_parallel: bool = True
    etp: int = 0  # chips that share one expert; 0: tp/ep of them, from ep = tp on one
    shard: int = 0  # data-parallel ranks that share a state, others hold copies (HSDP); 0: all of dp
    context_exchange: ContextExchange = "ring"
    split: tuple[
        int, ...
    ] = ()  # layers of each stage, or of each of its chunks in turn; (): as even as can be
    modules: tuple[str, ...] = ()  # of selective recomputation; (): the core of attention
    offload: tuple[str, ...] = ()  # e.g. ("optimizer", "activations:nvme"); without a tier it is the host
    compression: str = "none"  # of gradients on the wire

    @property
    def num_chips(self) -> int:
        return self.tp * self.pp * self.cp * self.dp

    @property
    def num_sharing_chips(self) -> int:
        """Chips in a row that hold one stage among all replicas: those with the same layers share gradients."""
        return self.tp * self.cp * self.dp

    def num_micro(self, global_batch: int) -> int:
        """Micro-batches of a replica in a step, of a batch that divides."""
        return global_batch // (self.dp * self.micro_batch)

    @property
    def words(self) -> str:
        """The layout as a person writes it, without what is 1.

        >>> Layout(tp=4, pp=8, vpp=6, dp=16).words
        'tp 4, pp 8 × 6, dp 16, zero 1, mb 1'
        >>> Layout(dp=64, zero=3, shard=8, offload=("optimizer",)).words
        'dp 64, zero 3 in groups of 8, mb 1, optimizer on host'
        """
        stages = f"pp {self.pp} × {self.vpp}" if self.vpp > 1 else f"pp {self.pp}"
        context = f"cp {self.cp}" + (" all-to-all" if self.context_exchange != "ring" else "")
        degrees = {f"tp {self.tp}": self.tp, stages: self.pp, context: self.cp}
        degrees |= {f"ep {self.ep}": self.ep, f"etp {self.etp}": self.etp * 2, f"dp {self.dp}": self.dp}
        said = [text for text, value in degrees.items() if value > 1]
        group = f" in groups of {self.shard}" if 0 < self.shard < self.dp else ""
        said += [f"zero {self.zero}{group}"] if self.dp * self.cp > 1 else []
        said += [f"mb {self.micro_batch}"]
        said += [f"split {_runs(self.split)}"] if self.split else []
        again = "+".join(self.modules) or self.recompute
        said += [f"recompute {again}"] if self.recompute != "none" else []
        said += [f"{what} on {tier}" for what, tier in map(offload_parts, self.offload)]
        said += [f"gradients {self.compression}"] if self.compression != "none" else []
        return ", ".join(said)

    def check(self, model: Model, num_chips: int, global_batch: int) -> None:
        """Refuse a layout that cannot run: which rule, the value, and the nearest legal ones."""
        check_layout(self, model, num_chips, global_batch)

    def is_legal(self, model: Model, num_chips: int, global_batch: int) -> bool:
        """Whether `check` would pass, without looking for something better to suggest."""
        return next(broken_rules(self, model, num_chips, global_batch), None) is None


def _runs(split: tuple[int, ...]) -> str:
    """Layers of stages with repeats together.

    >>> _runs((5, 6, 6, 6, 4))
    '5 6×3 4'
    """
    found: list[list[int]] = []
    for layers in split:
        if found and found[-1][0] == layers:
            found[-1][1] += 1
        else:
            found.append([layers, 1])
    return " ".join(f"{layers}×{count}" if count > 1 else f"{layers}" for layers, count in found)


ON_ONE_CHIP = Layout()  # nothing split
