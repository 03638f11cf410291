"""How a model is spread over chips for training: one layout, or a whole space of them as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.catalog.entries.model import Model
from datahall.cluster.distinct import unique_rows as unique_rows
from datahall.scenario.sections.training import USUAL_MICRO_BATCH, USUAL_ZERO
from datahall.scenario.words import COMPRESSIONS, CONTEXT_EXCHANGES, OFFLOADS, RECOMPUTES, ContextExchange
from datahall.training.layout.codes import (
    module_bits,
    module_names,
    offload_code,
    offload_names,
    offload_parts,
)
from datahall.training.layout.legality import broken_rules, check_layout
from datahall.workload.memory.activation import Recompute

Column = NDArray[np.float64]


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
    context: ContextExchange = "ring"
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
    def words(self) -> str:
        """The layout as a person writes it, without what is 1.

        >>> Layout(tp=4, pp=8, vpp=6, dp=16).words
        'tp 4, pp 8 × 6, dp 16, zero 1, mb 1'
        >>> Layout(dp=64, zero=3, shard=8, offload=("optimizer",)).words
        'dp 64, zero 3 in groups of 8, mb 1, optimizer on host'
        """
        stages = f"pp {self.pp} × {self.vpp}" if self.vpp > 1 else f"pp {self.pp}"
        context = f"cp {self.cp}" + (" all-to-all" if self.context != "ring" else "")
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


class Code(NamedTuple):
    """How a choice of a layout that is no number stands in a column; 0 is what is usual."""

    dtype: type[np.generic]
    number: Callable[[Any], int]
    choice: Callable[[int], object]


def _one_of(words: Sequence[str]) -> Code:
    return Code(np.int8, words.index, words.__getitem__)


CODES = {
    "recompute": _one_of(RECOMPUTES),
    "sequence_parallel": Code(np.bool_, int, bool),
    "context": _one_of(CONTEXT_EXCHANGES),
    "modules": Code(np.int16, module_bits, module_names),
    "offload": Code(np.int8, offload_code, offload_names),
    "compression": _one_of(COMPRESSIONS),
}
CUT = "split"  # any sequence of layers: an index into a table of its own
NUMBERS = tuple(name for name in Layout.__struct_fields__ if name not in (*CODES, CUT))


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """Many layouts as columns of equal length; cuts by hand stand in a table of their own."""

    tp: Column
    pp: Column
    vpp: Column
    cp: Column
    ep: Column
    dp: Column
    zero: Column
    micro_batch: Column
    etp: Column
    shard: Column
    recompute: NDArray[np.int8]  # index into RECOMPUTES
    sequence_parallel: NDArray[np.bool_]
    context: NDArray[np.int8]  # index into CONTEXT_EXCHANGES
    modules: NDArray[np.int16]  # a bit for each of MODULES
    offload: NDArray[np.int8]  # a digit of base 3 for each of OFFLOADS: 0 stays, 1 host, 2 nvme
    compression: NDArray[np.int8]  # index into COMPRESSIONS
    split: NDArray[np.int16]  # index into `splits`
    splits: tuple[tuple[int, ...], ...] = ((),)

    def __len__(self) -> int:
        return int(self.tp.size)

    @classmethod
    def of(cls, layouts: Layout | Sequence[Layout]) -> Space:
        """The columns of some layouts."""
        rows = [layouts] if isinstance(layouts, Layout) else list(layouts)
        splits = tuple(dict.fromkeys(((), *(row.split for row in rows))))
        columns: dict[str, Any] = {
            name: np.array([getattr(row, name) for row in rows], dtype=np.float64) for name in NUMBERS
        }
        for name, code in CODES.items():
            columns[name] = np.array([code.number(getattr(row, name)) for row in rows], dtype=code.dtype)
        cut = np.array([splits.index(row.split) for row in rows], dtype=np.int16)
        return cls(**columns, split=cut, splits=splits)

    @classmethod
    def plain(cls, columns: dict[str, Column], **others: NDArray[np.generic]) -> Space:
        """Columns of numbers with whatever is not given left at its default."""
        length = columns["tp"].size
        kinds = {**dict.fromkeys(NUMBERS, np.float64), **{name: one.dtype for name, one in CODES.items()}}
        given: dict[str, Any] = {**columns, **others}
        left = {name: np.zeros(length, kind) for name, kind in kinds.items() if name not in given}
        return cls(**given, **left, split=np.zeros(length, np.int16))

    def row(self, index: int) -> Layout:
        """One layout of the space."""
        numbers: dict[str, Any] = {name: int(getattr(self, name)[index]) for name in NUMBERS}
        choices: dict[str, Any] = {
            name: code.choice(int(getattr(self, name)[index])) for name, code in CODES.items()
        }
        return Layout(**numbers, **choices, split=self.splits[int(self.split[index])])

    def keep(self, mask: NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """The rows a mask or index selects."""
        columns = {name: getattr(self, name)[mask] for name in self.__struct_fields__ if name != "splits"}
        return type(self)(**columns, splits=self.splits)

    @property
    def expert_tp(self) -> Column:
        """Chips that share one expert."""
        return np.where(self.etp > 0, self.etp, np.maximum(self.tp / self.ep, 1.0))

    @property
    def expert_ways(self) -> Column:
        """Chips that together hold all experts of a stage once."""
        return self.ep * self.expert_tp

    @property
    def expert_copies(self) -> Column:
        """Chips that hold the same experts."""
        return np.maximum(1.0, self.dp * self.cp * self.tp / self.expert_ways)

    @property
    def num_copies(self) -> Column:
        """Groups that each hold a whole state, of dense weights and of experts alike."""
        return np.where(self.shard > 0, self.dp / np.maximum(self.shard, 1.0), 1.0)

    @property
    def sharers(self) -> Column:
        """Ranks that share the state of dense weights from ZeRO-1 on."""
        return self.dp * self.cp / self.num_copies

    @property
    def expert_sharers(self) -> Column:
        """Ranks that share the state of the experts from ZeRO-1 on."""
        return np.maximum(1.0, self.expert_copies / self.num_copies)

    def offloaded(self, what: str) -> NDArray[np.int8]:
        """Where a part of the memory lies in each row: 0 on the chip, 1 in the host, 2 on NVMe."""
        return self.offload // np.int8(3 ** OFFLOADS.index(what)) % np.int8(3)
