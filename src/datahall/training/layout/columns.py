"""Many layouts at once: a space of them as columns, and how each choice stands in its column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from datahall.cluster.distinct import unique_rows as unique_rows
from datahall.scenario.words import COMPRESSIONS, CONTEXT_EXCHANGES, OFFLOADS
from datahall.training.layout.codes import module_bits, module_names, offload_code, offload_names
from datahall.training.layout.layout import Layout
from datahall.workload.memory.recompute import RECOMPUTES

Column = NDArray[np.float64]


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
    "context_exchange": _one_of(CONTEXT_EXCHANGES),
    "modules": Code(np.int16, module_bits, module_names),
    "offload": Code(np.int8, offload_code, offload_names),
    "compression": _one_of(COMPRESSIONS),
}
CUT = "split"  # any sequence of layers: an index into a table of its own
NUMBERS = tuple(name for name in Layout.__struct_fields__ if name not in (*CODES, CUT))


def micro_batches(global_batch: int, dp: Column, micro_batch: Column) -> Column:
    """Micro-batches of a replica in a step; a batch smaller than the layout can divide is one all the same."""
    return np.maximum(1.0, global_batch / (dp * micro_batch))


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
    context_exchange: NDArray[np.int8]  # index into CONTEXT_EXCHANGES
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

    def num_micro(self, global_batch: int) -> Column:
        """Micro-batches of a replica in a step."""
        return micro_batches(global_batch, self.dp, self.micro_batch)

    @property
    def expert_tp(self) -> Column:
        """Chips that share one expert."""
        return np.where(self.etp > 0, self.etp, np.maximum(self.tp / self.ep, 1.0))

    @property
    def has_expert_groups(self) -> NDArray[np.bool_]:
        """Whether experts have a tensor parallelism of their own: one that tp and ep do not imply, which is what the
        constants of frameworks were fitted with."""
        return np.asarray((self.etp > 0) & (self.etp != np.maximum(self.tp / self.ep, 1.0)))

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

    @property
    def is_shared(self) -> NDArray[np.bool_]:
        """Whether ZeRO changes what a chip holds or does: some rank shares its state, or stages gather it anew."""
        return (self.sharers > 1) | (self.expert_sharers > 1) | (self.zero >= 3)

    def offloaded(self, what: str) -> NDArray[np.int8]:
        """Where a part of the memory lies in each row: 0 on the chip, 1 in the host, 2 on NVMe."""
        return self.offload // np.int8(3 ** OFFLOADS.index(what)) % np.int8(3)
